"""The live page beside a long run, whose large files also lie there compressed."""

import gzip

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visitor, ask_now
from tests.browser.written_run import LiveServer, WrittenRun, write_crowd

pytestmark = pytest.mark.browser

STEPS, PEOPLE = 1200, 400


@pytest.fixture
def run(stage: tuple[LiveServer, WrittenRun]) -> WrittenRun:
    """A run with both of its large files compressed."""
    write_crowd(stage[1], STEPS, PEOPLE)
    return stage[1]


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


def test_what_a_second_member_spoils_is_read_as_the_plain_file(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    for name in ("progress.jsonl.gz", "peers.json.gz"):
        with (run.path / name).open("ab") as file:
            # Other spoiled files are read in Node.js, which allows this.
            file.write(gzip.compress(b"{}"))
    visitor = visit(server.address)
    page = visitor.open("live/")
    expect(page.locator("[data-live=samples]")).to_have_text(f"{STEPS * 128:,}")
    expect(page.locator("[data-live=board-count]")).to_have_text(f"{PEOPLE:,} contributors")
    expect(page.locator("[data-live=problems]")).to_be_hidden()
    assert server.ranges_of("progress.jsonl.gz") == [""]
    assert server.ranges_of("progress.jsonl")
    assert server.ranges_of("peers.json")
    assert visitor.errors == []
