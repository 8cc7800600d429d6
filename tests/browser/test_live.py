"""The live page beside a run that is being written: what is new, what is wrong, how old it is."""

import gzip
import json
import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visit, Visitor, ask_now
from tests.browser.written_run import LiveServer, WrittenRun, write_crowd

pytestmark = pytest.mark.browser

HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""

COUNT_FETCHES = """
window.fetched = 0;
const fetchIt = fetch;
window.fetch = (...given) => { window.fetched += 1; return fetchIt(...given); };
"""


@pytest.fixture
def run(stage: tuple[LiveServer, WrittenRun]) -> WrittenRun:
    """An open run without a step."""
    stage[1].open()
    return stage[1]


def look(visit: Visitor, server: LiveServer, query: str = "") -> Visit:
    """A visitor of the run's page."""
    visitor = visit(server.address)
    visitor.open(f"live/{query}")
    return visitor


def asked_later(page: Page) -> int:
    """Fetches that a page with a clock has made, ten seconds later by it."""
    page.clock.run_for(10_000)
    return page.evaluate("async () => { await fetch('../about/'); return --window.fetched; }")


def figure(page: Page, name: str, text: str | re.Pattern[str]) -> None:
    """Wait until the page shows a figure, without its pause before it asks again."""
    ask_now(page)
    expect(page.locator(f"[data-live={name}]")).to_have_text(text)


def test_a_run_is_followed_by_the_bytes_of_its_new_steps_by_its_notice_and_by_its_feed(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(40)
    run.write_people("ada", "ben")
    run.write_checkpoints(2)
    run.live.notify("all 2 volunteers are behind routers: the organizers average for them")
    visitor = look(visit, server)
    page = visitor.page
    figure(page, "step", "40")
    figure(page, "state", "Running")
    figure(page, "working", "4")
    # 960 steps of a second each, but for the pause in which the page was opened
    figure(page, "left", re.compile(r"About 1[56] minutes left: "))
    detail = page.locator("[data-live=detail]")
    expect(detail).to_contain_text("All 2 volunteers are behind routers")
    before = run.progress.stat().st_size
    run.live.notify("")
    run.add(3)
    figure(page, "step", "43")
    expect(detail).not_to_contain_text("behind routers")
    first, *later = server.ranges_of("progress.jsonl")
    assert first == ""
    starts = [int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) for wanted in later]  # type: ignore[index]
    line = len(run.progress.read_bytes().splitlines(keepends=True)[-1])
    assert starts
    assert min(starts) >= before - 2 * line
    link = page.get_by_role("link", name="Atom feed")
    answer = page.request.get(link.evaluate("(link) => link.href"))
    assert answer.ok
    assert "xml" in answer.headers["content-type"]
    assert "<title>Checkpoint at step 2, loss" in answer.text()
    assert visitor.errors == []


def test_what_volunteers_exchanged_is_shown_where_it_was_noted(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    run.write_people("ada", "ben")
    page = look(visit, server).page
    page.set_viewport_size({"width": 1280, "height": 900})
    figure(page, "board-count", "2 contributors")
    heading = page.get_by_role("button", name="Exchanged")
    expect(heading).to_be_hidden()
    expect(page.locator("[data-live=traffic-words]")).to_be_hidden()
    run.write_people("ada", "ben", traffic=True)
    run.add(1)
    ask_now(page)
    cells = page.locator("tbody .board__traffic")
    # sent and received by each, as `write_people` says
    expect(cells).to_have_text(["3.00 MiB", "6.00 MiB"])
    expect(page.locator("[data-live=traffic-words]")).to_be_visible()
    heading.click()
    expect(cells).to_have_text(["6.00 MiB", "3.00 MiB"])
    page.get_by_role("link", name="ada").click()
    person = page.locator("[data-live=contributor]")
    expect(person).to_contain_text("1.00 MiB")
    expect(person).to_contain_text("2.00 MiB received")


def test_a_hidden_page_asks_for_nothing_nor_does_one_of_a_finished_run_which_says_when(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    run.write_people("ada")
    visitor = visit(server.address)
    visitor.page.clock.install()
    visitor.page.add_init_script(COUNT_FETCHES)
    page = visitor.open("live/")
    figure(page, "state", "Running")
    page.evaluate(HIDE, True)
    asked = -1
    while (now := asked_later(page)) > asked:  # the round that was under way ends
        asked = now
    run.add(1)
    assert asked_later(page) == asked
    page.evaluate(HIDE, False)
    figure(page, "step", "6")
    run.add(1)
    run.write_people("ada", "ben")
    run.live.finish("2026-03-04T05:06:07.000Z")
    figure(page, "state", "Finished on 4 March 2026, 05:06 UTC")
    figure(page, "step", "7")
    figure(page, "board-count", "2 contributors")
    asked = asked_later(page)
    ask_now(page)
    assert asked_later(page) == asked


def test_wrong_clocks_change_no_age_and_a_monitors_is_told(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    visitor = visit(server.address)
    visitor.page.clock.install(time=time.time() - 30 * 3600)
    page = visitor.open("live/")
    figure(page, "state", "Running")
    detail = page.locator("[data-live=detail]")
    expect(detail).to_have_text(re.compile(r"Newest step \d+ seconds? ago\.$"))
    server.clock = -300.0
    run.add(1)
    figure(page, "step", "6")
    expect(detail).to_contain_text("clock is ahead")


def test_an_unknown_run_is_told_with_those_that_are_here(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    visitor = visit(server.address)
    for name in ("nowhere", "../../etc"):
        page = visitor.open(f"live/?run={name}")
        figure(page, "title", "No such run")
        figure(page, "detail", re.compile("Available runs: watched"))
    asked = [path for path, _ in server.asked if path.endswith("/run.json")]
    assert set(asked) <= {"/live/nowhere/run.json"}
    assert visitor.errors == []


def test_a_server_that_is_gone_is_told_and_asked_again(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    page = look(visit, server).page
    figure(page, "state", "Running")
    server.stop()
    ask_now(page)
    problems = page.locator("[data-live=problems]")
    expect(problems).to_contain_text("cannot read new data: the server does not respond")
    figure(page, "step", "5")
    run.add(1)
    server.start()
    figure(page, "step", "6")
    expect(problems).to_be_hidden()


def test_a_server_that_takes_a_question_and_never_answers_is_told(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    visitor = visit(server.address)
    visitor.page.clock.install()
    visitor.page.route("**/progress.jsonl", lambda _: None)
    with visitor.page.expect_request("**/progress.jsonl"):
        page = visitor.open("live/")
    page.clock.fast_forward(21_000)
    problems = page.locator("[data-live=problems]")
    expect(problems).to_contain_text("cannot read new data: the server does not respond")
    page.unroute("**/progress.jsonl")
    page.clock.fast_forward(60_000)
    figure(page, "step", "5")
    expect(problems).to_be_hidden()


def test_other_runs_are_listed_and_have_addresses(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(3)
    other = WrittenRun(run.path.parent / "other")
    other.open()
    other.add(7)
    entries = [
        {"name": name, "title": f"The {name} run", "note": ""} for name in ("watched", "other")
    ]
    (run.path.parent / "runs.json").write_text(json.dumps({"runs": entries}))
    visitor = look(visit, server)
    page = visitor.page
    figure(page, "step", "3")
    page.get_by_role("link", name="The other run").click()
    figure(page, "step", "7")
    assert page.url.endswith("?run=other")
    expect(page.locator("[data-chart=loss] .main-svg").first).to_be_visible()
    page.get_by_role("link", name="The watched run").click()
    figure(page, "step", "3")
    run.live.progress.path.unlink()
    page.goto(f"{server.address}live/?run=other")
    figure(page, "step", "7")
    page.get_by_role("link", name="The watched run").click()
    figure(page, "state", "Waiting for the first step")
    figure(page, "board-count", "No one yet")
    expect(page.locator("[data-chart=loss] .main-svg")).to_have_count(0)
    run.add(1)
    figure(page, "state", "Running")
    figure(page, "step", "4")
    assert visitor.errors == []


def test_what_a_second_member_spoils_is_read_as_the_plain_file(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    write_crowd(run, steps=1200, people=400)
    for name in ("progress.jsonl.gz", "peers.json.gz"):
        with (run.path / name).open("ab") as file:
            # Other spoiled files are read in Node.js, which allows this.
            file.write(gzip.compress(b"{}"))
    visitor = look(visit, server)
    figure(visitor.page, "samples", f"{1200 * 128:,}")
    figure(visitor.page, "board-count", "400 contributors")
    expect(visitor.page.locator("[data-live=problems]")).to_be_hidden()
    assert server.ranges_of("progress.jsonl.gz") == [""]
    assert server.ranges_of("progress.jsonl")
    assert server.ranges_of("peers.json")
    assert visitor.errors == []
