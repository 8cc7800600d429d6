"""The live page beside a long run, whose large files also lie there compressed."""

import gzip
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.visits import Visit, Visitor, ask_now
from tests.browser.written_run import LiveServer, WrittenRun, write_crowd

pytestmark = pytest.mark.browser

STEPS, PEOPLE = 1200, 400


@pytest.fixture
def run(stage: tuple[LiveServer, WrittenRun]) -> WrittenRun:
    """A run with both of its large files compressed."""
    write_crowd(stage[1], STEPS, PEOPLE)
    return stage[1]


def look(visit: Visit) -> Page:
    """The run's page once all of the run is shown."""
    page = visit.open("live/")
    expect(page.locator("[data-live=step]")).to_have_text(f"{STEPS:,}")
    expect(page.locator("[data-live=samples]")).to_have_text(f"{STEPS * 128:,}")
    expect(page.locator("[data-live=board-count]")).to_have_text(f"{PEOPLE:,} contributors")
    expect(page.locator("[data-live=problems]")).to_be_hidden()
    assert visit.errors == []
    return page


def test_a_long_run_comes_compressed_and_only_what_is_new_as_it_is(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    covered = run.progress.stat().st_size
    run.add(1)
    visitor = visit(server.address)
    page = visitor.open("live/")
    expect(page.locator("[data-live=step]")).to_have_text(f"{STEPS + 1:,}")
    expect(page.locator("[data-live=board-count]")).to_have_text(f"{PEOPLE:,} contributors")
    assert server.ranges_of("progress.jsonl.gz") == [""]
    (first, *_) = server.ranges_of("progress.jsonl")
    line = run.progress.read_bytes()[:covered].splitlines(keepends=True)[-1]
    assert first == f"bytes={covered - len(line)}-"
    assert server.ranges_of("peers.json") == []
    run.live.write_peers(run.live.read_peers()[:-1])
    run.add(1)
    ask_now(page)  # a run of slow steps is asked less often
    expect(page.locator("[data-live=step]")).to_have_text(f"{STEPS + 2:,}")
    expect(page.locator("[data-live=board-count]")).to_have_text(f"{PEOPLE - 1} contributors")
    assert server.ranges_of("progress.jsonl.gz") == [""]
    assert visitor.errors == []


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "other bytes": lambda content: content[:500] + bytes(500) + content[1000:],
    "a page": lambda _: b"<!doctype html>\n<title>Not found</title>\n",
    "empty": lambda _: b"",
    "another run's": lambda content: gzip.compress(gzip.decompress(content).replace(b"1", b"2")),
    "a second member": lambda content: content + gzip.compress(b"{}"),
}


OF_STEPS_ALONE = ("a page", "empty", "another run's")


def test_a_spoiled_compressed_file_is_read_as_the_plain_one(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    steps, people = run.path / "progress.jsonl.gz", run.path / "peers.json.gz"
    whole = {path: path.read_bytes() for path in (steps, people)}
    for how, spoil in SPOILED.items():
        spoiled = [steps] if how in OF_STEPS_ALONE else [steps, people]
        for path, content in whole.items():
            path.write_bytes(spoil(content) if path in spoiled else content)
        server.asked.clear()
        look(visit(server.address))  # whose browser has kept nothing
        assert server.ranges_of("progress.jsonl.gz") == [""], how
        for path in spoiled:
            assert server.ranges_of(path.stem), how


def test_a_host_that_keeps_compressed_files_back_sends_the_plain_ones(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    visitor = visit(server.address)
    visitor.page.route("**/live/watched/*.gz", lambda route: route.fulfill(status=404))
    look(visitor)
    assert server.ranges_of("progress.jsonl") != []
    assert server.ranges_of("peers.json") != []


def test_a_host_that_says_that_they_are_compressed_will_do(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    def say(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=gzip.decompress(answer.body()))

    visitor = visit(server.address)
    visitor.page.route("**/live/watched/*.gz", say)
    look(visitor)
    assert server.ranges_of("progress.jsonl")[0] != "", "the whole plain file was not needed"
    assert server.ranges_of("peers.json") == []


def test_a_host_without_ranges_will_do(visit: Visitor, server: LiveServer, run: WrittenRun) -> None:
    server.ranges = False
    look(visit(server.address))


def test_a_browser_that_cannot_unpack_reads_the_plain_files(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    visitor = visit(server.address)
    visitor.page.add_init_script("delete globalThis.DecompressionStream;")
    look(visitor)
    assert server.ranges_of("progress.jsonl.gz") == []
    assert server.ranges_of("peers.json.gz") == []
