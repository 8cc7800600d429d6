"""'Train in this tab' in Chromium: a click trains, and volunteers come and go."""

import json
import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect
from safetensors.numpy import load_file, save

from templates.pages.train_in_this_tab.context import LESSON, about
from tests.browser.visits import Visit, Visitor

pytestmark = pytest.mark.browser


@pytest.fixture
def browser(optimizing: Browser) -> Browser:
    return optimizing


HIDE = """() => {
  Object.defineProperty(document, "hidden", { get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# The page's clock goes on with its steps, so that a busy machine shows and draws as much.
BY_STEPS = """
let now = 1000;
performance.now = () => (now += 20);
"""
# The page says the loss six times a minute.
LATER = """() => {
  const now = performance.now.bind(performance);
  performance.now = () => now() + 60_000;
}"""
BELOW = """(aim) => {
  const loss = Number(document.querySelector("#tab [data-now=loss]").textContent);
  return loss > 0 && loss < aim;
}"""


def opened(visitor: Visit) -> Page:
    """The page of a visitor, before anything is trained."""
    visitor.page.add_init_script(BY_STEPS)
    return visitor.open("train-in-this-tab/")


def started(page: Page) -> None:
    """Press Start by keyboard, and wait for the first step."""
    page.locator("#tab [data-start]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tab")).to_have_attribute("data-step", re.compile(r"\d"))


def step_of(page: Page) -> int:
    """Steps that the swarm has made."""
    return int(page.locator("#tab").get_attribute("data-step") or 0)


def waits_for_steps(page: Page, more: int) -> None:
    """Wait until the swarm has made so many steps more."""
    aim = step_of(page) + more
    page.wait_for_function("aim => document.querySelector('#tab').dataset.step >= aim", arg=aim)


def test_start_loads_the_training_the_loss_falls_and_pictures_are_drawn(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = opened(visitor)
    expect(page.locator("#tab [data-start]")).to_have_text("Start")
    assert not [url for url in visitor.requests if re.search(r"lesson|tab-volunteer", url)]
    started(page)
    expect(page.locator("#tab tbody th")).to_have_text(["A", "B"])  # two are enough for a phone
    assert len([url for url in visitor.requests if url.endswith("lesson.safetensors")]) == 1
    page.wait_for_function(BELOW, arg=4.4)  # guessing among 128 codes costs 4.85
    expect(page.locator("#tab [data-picture] canvas")).to_have_count(4)
    words = re.compile(r"Drawn after \d+ steps: a red circle$")
    expect(page.locator("#tab canvas").first).to_have_attribute("aria-label", words)
    points = (page.locator("#tab [data-line]").get_attribute("points") or "").split()
    first, *_, last = (float(point.partition(",")[2]) for point in points)
    assert last > first  # further down
    page.evaluate(LATER)
    expect(page.locator("#tab [data-said]")).to_have_text(re.compile(r"Step \d+: the loss is \d"))
    pauses_by_hand_and_while_hidden(page)
    assert visitor.errors == []


def pauses_by_hand_and_while_hidden(page: Page) -> None:
    """A paused swarm makes no step more, nor does one that nobody sees."""
    before = time.monotonic()
    waits_for_steps(page, 2)
    two = time.monotonic() - before
    button = page.locator("#tab [data-start]")
    button.click()
    expect(button).to_have_text("Continue")
    expect(page.locator("#tab [data-said]")).to_have_text("Paused.")
    assert_rests(page, two)
    button.click()
    waits_for_steps(page, 1)
    page.evaluate(HIDE)
    assert_rests(page, two)


def assert_rests(page: Page, seconds: float) -> None:
    """In a time in which there would be steps, there is none but the one that is under way."""
    page.wait_for_timeout(1000 * seconds)
    step = step_of(page)
    page.wait_for_timeout(1000 * seconds)
    assert step_of(page) == step


def with_a_small_lesson(visitor: Visit) -> Visit:
    """The visitor, for whom a step is a sequence of each of three volunteers, and nobody draws."""
    small = {**about(), "target_batch": 3, "micro_batch": 1}
    lesson = save(load_file(LESSON), {"about": json.dumps(small)})
    visitor.page.route("**/lesson.safetensors", lambda route: route.fulfill(body=lesson))
    visitor.page.route("**/tab-painter.js", lambda route: route.abort())
    return visitor


def test_volunteers_are_unplugged_added_and_slowed_while_training_goes_on_to_answer_a_guess(
    visit: Visitor,
) -> None:
    visitor = with_a_small_lesson(visit())
    page = opened(visitor)
    started(page)
    rows = page.locator("#tab tbody tr")
    expect(rows).to_have_count(3)
    sent = page.locator("#tab [data-now=sent]")
    expect(sent).to_have_text(re.compile(r"^3\.\d\d\sMiB$"))  # 4 copies of 0.8 MiB
    page.get_by_role("button", name="Send 8 bits").click()
    expect(page.get_by_label("8 bits")).to_be_checked()
    expect(sent).to_have_text(re.compile(r"^\d{3}\sKiB$"))
    page.get_by_label("sparse updates").check()  # local steps
    expect(page.get_by_label("CenteredClip")).to_be_disabled()
    expect(sent).to_have_text(re.compile(r"^17\.\d\sKiB$"))  # 3 of 5.95 KiB: each uploads once
    before = step_of(page)
    waits_for_steps(page, 1)
    assert (step_of(page) - before) % 8 == 0
    page.get_by_label("8 bits").check()
    page.get_by_label("What C sends").select_option("noise")
    page.get_by_label("CenteredClip").check()
    page.get_by_label("an equal share").check()
    page.get_by_role("button", name="Slow B down").click()
    expect(page.get_by_label("Pace of B")).to_have_value("4")
    expect(page.get_by_label("Pace of B")).to_be_focused()
    waits_for_steps(page, 4)
    for place in range(3):
        expect(rows.nth(place).locator("[data-sequences]")).to_have_text("1")
    page.get_by_role("button", name="Unplug B").click()
    expect(rows.locator("th")).to_have_text(["A", "C"])
    page.get_by_role("button", name="Let B attack").click()
    expect(page.locator("#tab [data-said]")).to_contain_text("That volunteer is gone")
    waits_for_steps(page, 3)
    page.get_by_role("button", name="Add a volunteer").click()
    expect(rows.locator("th")).to_have_text(["A", "C", "D"])
    expect(rows.nth(2).locator("[data-total]")).to_have_text(re.compile(r"^[1-9]"))
    page.get_by_label("at its own pace").check()
    page.get_by_label("Pace of D").select_option("20 Mbit/s")
    waits_for_steps(page, 2)
    for name in ("C", "D"):
        page.get_by_role("button", name=f"Unplug {name}").click()
    waits_for_steps(page, 2)
    expect(rows.nth(0).locator("[data-sent]")).to_have_text(re.compile(r"^0\sB$"))
    page.get_by_label("falls").check()
    page.get_by_label("Pace of A").select_option("half")
    page.get_by_label("Pace of A").select_option("full")
    answer = re.compile(r"^A computes at its full pace. In the 30 exchanges .*, the loss .*guessed")
    expect(page.locator("#tab [data-said]")).to_have_text(answer)
    page.get_by_role("button", name="Unplug A").click()
    said = "No volunteer is left, so training has stopped."
    expect(page.locator("#tab [data-said]")).to_have_text(said)
    expect(page.locator("#tab [data-start]")).to_have_text("Start again")
    assert visitor.errors == []


def test_on_home_a_click_trains_in_place_of_the_recording(visit: Visitor) -> None:
    visitor = with_a_small_lesson(visit())
    page = visitor.open("./")
    drawings, curve = page.locator("#tab [data-picture] img"), page.locator("#tab [data-line]")
    expect(drawings).to_have_count(4)
    recorded = curve.get_attribute("points") or ""
    assert len(recorded.split()) > 100
    assert not [url for url in visitor.requests if re.search(r"lesson|tab-volunteer", url)]
    started(page)
    expect(drawings).to_have_count(0)
    expect(page.locator("#tab [data-start]")).to_have_text("Pause")
    expect(page.locator("#tab [data-now=loss]")).to_have_text(re.compile(r"^4\.\d\d$"))
    waits_for_steps(page, 2)
    assert len((curve.get_attribute("points") or "").split()) < len(recorded.split())
    assert visitor.errors == []


def test_without_the_workers_script_the_page_says_that_training_has_stopped(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.route("**/tab-volunteer.js", lambda route: route.abort())
    page = visitor.open("train-in-this-tab/")
    page.locator("#tab [data-start]").click()
    expect(page.locator("#tab [data-said]")).to_have_text(re.compile("training has stopped"))
    expect(page.locator("#tab [data-start]")).to_have_text("Start again")
