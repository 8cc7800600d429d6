"""The live page beside a run that is being written: what is new, what is wrong, how old it is."""

import json
import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visit, Visitor, ask_now
from tests.browser.written_run import LiveServer, WrittenRun
from training.run.live import timestamp

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
    fetched: int = page.evaluate(
        "async () => { await fetch('../about/'); return --window.fetched; }"
    )
    return fetched


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


def test_the_time_left_is_told_until_the_run_is_over(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(15, ago=25)
    page = look(visit, server).page
    figure(page, "step", "15")
    figure(page, "left", "")  # too few steps to tell
    run.add(25)
    # 960 steps of a second each, but for the pause in which the page was opened
    soon = "1[56] minutes"
    words = rf"About {soon} left: {soon} at the fastest pace so far, \d+ \w+ at the slowest\."
    figure(page, "left", re.compile(words))
    run.live.finish(timestamp(time.time()))
    figure(page, "left", re.compile(r"It took 1 h 0 min\."))


def test_what_cannot_be_read_is_told_and_leaves_what_was_known(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5)
    run.write_people("ada", "ben")
    whole = run.progress.read_bytes()
    run.progress.write_bytes(whole[:-30])  # a line that is still being written
    page = look(visit, server).page
    problems = page.locator("[data-live=problems]")
    figure(page, "step", "4")
    expect(problems).to_be_hidden()
    run.progress.write_bytes(whole)
    figure(page, "step", "5")
    expect(problems).to_be_hidden()
    figure(page, "board-count", "2 contributors")
    (run.path / "peers.json").write_text("[{")
    run.add(1)
    figure(page, "step", "6")
    expect(problems).to_contain_text("peers.json cannot be read")
    figure(page, "board-count", "2 contributors")
    run.write_people("ada", "ben", "cleo")
    with run.progress.open("a") as file:
        file.write('{"step": 7, "time": \n{"step": "seven"}\n\xff\n')
    run.add(1)
    figure(page, "board-count", "3 contributors")
    expect(problems).to_contain_text("3 lines of progress.jsonl could not be read")
    expect(problems).not_to_contain_text("peers.json")


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


def test_a_stall_is_told_with_its_length_and_ends_with_the_next_step(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(5, ago=12 * 60 + 5)
    page = look(visit, server).page
    figure(page, "state", "Silent for 12 minutes")
    expect(page.locator("[data-live=state]")).to_have_attribute("data-state", "silent")
    expect(page.locator("[data-live=detail]")).to_contain_text("may be offline")
    run.write_people("ada")
    page.reload()
    expect(page.locator("[data-live=detail]")).to_contain_text("Volunteers are present")
    run.add(1)
    figure(page, "state", "Running")


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


def test_a_run_without_its_files_waits_for_the_first_step(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.progress.unlink()
    visitor = look(visit, server)
    figure(visitor.page, "state", "Waiting for the first step")
    figure(visitor.page, "board-count", "No one yet")
    run.add(1)
    figure(visitor.page, "state", "Running")
    figure(visitor.page, "step", "1")
    assert visitor.errors == []


@pytest.mark.parametrize("name", ["nowhere", "../../etc"])
def test_an_unknown_run_is_told_with_those_that_are_here(
    visit: Visitor, server: LiveServer, run: WrittenRun, name: str
) -> None:
    visitor = look(visit, server, f"?run={name}")
    figure(visitor.page, "title", "No such run")
    figure(visitor.page, "detail", re.compile("Available runs: watched"))
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


def test_a_server_without_ranges_will_do(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    server.ranges = False
    run.add(5)
    page = look(visit, server).page
    figure(page, "step", "5")
    for step in ("6", "7"):
        run.add(1)
        figure(page, "step", step)
    figure(page, "samples", str(7 * 128))


def test_another_file_in_its_place_is_read_from_the_start(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(9)
    page = look(visit, server).page
    figure(page, "step", "9")
    lines = [run.line(step, time.time()) for step in (1, 2)]
    other = run.path / "other.jsonl"
    other.write_text("".join(json.dumps(vars(line)) + "\n" for line in lines))
    other.replace(run.progress)
    figure(page, "step", "2")
    figure(page, "samples", str(2 * 128))


def test_a_stall_and_a_return_are_events(
    visit: Visitor, server: LiveServer, run: WrittenRun
) -> None:
    run.add(30, ago=400)
    run.add(9, ago=30)
    run.step = 35
    run.add(4)
    page = look(visit, server).page
    page.get_by_text("The events as a list").click()
    events = page.locator(".events li")
    expect(events.filter(has_text="No step for 6 minutes")).to_have_count(1)
    expect(events.filter(has_text="Went back from step 39 to before step 36")).to_have_count(1)
    figure(page, "samples", f"{39 * 128:,}")
    expect(page.locator("[data-live=problems]")).to_contain_text("returned from step 39")
    expect(page.locator(".key--event-stalled")).to_be_visible()
    expect(page.locator(".key--event-joined")).to_be_hidden()


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
    page = look(visit, server).page
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
    expect(page.locator("[data-chart=loss] .main-svg")).to_have_count(0)
