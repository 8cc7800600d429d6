"""The page 'Plan a run': what it shows for each state is what CPython answers."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.test_every_page import AXE, END_TRANSITIONS, FITS, findings
from tests.browser.visits import Visitor
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

PHONE = ViewportSize(width=390, height=844)
SET = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }"


# All that the page says of a state; the other GPUs as their option has them.
SHOWN = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const cells = (row) => [...row.querySelectorAll("th, td")].map((cell) => cell.textContent);
  return {
    figures: all("#plan [data-figure]").map((place) => [place.dataset.figure, place.textContent]),
    stairs: all("[data-stair]").filter((line) => line.checkVisibility())
      .map((line) => [line.dataset.stair, line.querySelector("[data-time]").textContent]),
    assumptions: all("#plan-assumptions tr").map(cells),
    kinds: all("#plan-kinds tbody tr").map(cells),
    moreGpus: all(".counts__row select").map(({value}, place) =>
      `${value}:${all(".counts__row input")[place].value}`).join(),
    leftOut: all("[data-field][hidden]").map((frame) => frame.dataset.field),
  };
}"""


def assert_shows(page: Page, state: dict[str, str]) -> dict[str, Any]:
    """Wait for the state's figures, and hold all that is shown against CPython's answer."""
    value: dict[str, Any] = ask("plan", **state)["value"]
    expect(page.locator("#plan-command")).to_have_text(value["command"])
    expect(page.locator("#plan .answer")).to_have_attribute("aria-busy", "false")
    shown = page.evaluate(SHOWN)
    assert shown["figures"] == [[name, value["figures"][name]] for name, _ in shown["figures"]]
    assert dict(shown["stairs"]) == {one["field"]: one["time"] for one in value["stairs"]}
    assert shown["assumptions"] == value["assumptions"]
    assert shown["moreGpus"] == value["values"]["more_gpus"]
    assert shown["kinds"] == value["kinds"]
    assert page.locator("#plan-kinds").is_visible() == (len(value["kinds"]) > 1)
    assert urlsplit(page.url).query == value["query"]
    assert {*shown["leftOut"]} & {*value["values"]} == {*value["left_out"]} & {*value["values"]}
    return value


def test_presets_edits_and_switches_lead_to_states_that_can_be_shared(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("plan/")
    page.get_by_role("button", name="Covenant-72B").click()
    query = ask("plan")["value"]["query"]
    assert query == ""
    button = page.locator(".plan__presets button", has_text="Covenant-72B")
    state = dict(parse_qsl(button.get_attribute("data-query") or ""))
    assert_shows(page, state)
    page.get_by_role("button", name="Reset to the defaults").click()
    assert_shows(page, {})
    page.locator("#volunteers").fill("200")
    assert_shows(page, {"volunteers": "200"})
    page.locator("input[type=range][name=up]").evaluate(SET, "0")
    assert_shows(page, {"volunteers": "200", "up": "5"})
    page.locator("[data-stair=overlap] input").focus()
    page.keyboard.press("Space")
    state = {"volunteers": "200", "up": "5", "overlap": "true"}
    assert_shows(page, state)
    page.locator("#model").select_option("t5-small")
    assert_shows(page, {**state, "model": "t5-small"})
    page.locator("#model").select_option("other")
    value = ask("plan", **{**state, "model": "t5-small"})["value"]["values"]
    described = {name: value[name] for name in ("parameters", "layers", "width")}
    assert_shows(page, {**state, "model": "other", **described})
    shared = visit().open(f"plan/?{urlsplit(page.url).query}")
    assert_shows(shared, {**state, "model": "other", **described})
    assert visitor.errors == []


def test_a_printed_plan_has_its_assumptions_and_sources_and_no_form(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("plan/")
    expect(page.locator("#plan-form")).to_be_hidden()  # without JavaScript there is none either
    page = visit().open("plan/?overlap=true")
    value = assert_shows(page, {"overlap": "true"})
    page.emulate_media(media="print")
    expect(page.locator("#plan-form")).to_be_hidden()
    expect(page.locator(".plan__more")).to_be_hidden()
    expect(page.locator("#plan-assumptions")).to_be_visible()
    expect(page.locator("#plan-address")).to_have_text(page.url)
    assert page.locator("#plan-sources a").count() == len(value["sources"])


def test_kinds_of_gpus_are_added_and_removed_from_the_keyboard(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("plan/")
    before = assert_shows(page, {})
    add = page.get_by_role("button", name="Add another GPU")
    add.focus()
    page.keyboard.press("Enter")
    first = page.locator(".counts__row").first
    expect(first.locator("select")).to_be_focused()
    assert_shows(page, {"more_gpus": "p100:1"})
    page.keyboard.type("L40S")  # a list goes to what is typed
    expect(first.locator("select")).to_have_value("l40s")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("15")
    faster = assert_shows(page, {"more_gpus": "l40s:15"})
    assert faster["figures"]["time"] != before["figures"]["time"]
    assert faster["figures"]["subject"].endswith("35 volunteers")
    expect(page.get_by_label("Volunteers with L40S 48 GB")).to_be_focused()
    add.press("Enter")
    assert_shows(page, {"more_gpus": "l40s:15,p100:1"})
    shared = visit().open(f"plan/?{urlsplit(page.url).query}")
    assert_shows(shared, {"more_gpus": "l40s:15,p100:1"})
    page.get_by_role("button", name="Remove L40S 48 GB").press("Space")
    assert_shows(page, {"more_gpus": "p100:1"})
    expect(page.get_by_role("button", name="Remove Tesla P100 16 GB")).to_be_focused()
    page.keyboard.press("Enter")
    assert_shows(page, {})
    expect(add).to_be_focused()
    assert visitor.errors == []


def test_what_is_refused_is_told_beside_its_field_until_it_is_corrected(visit: Visitor) -> None:
    page = visit().open("plan/?utilization=120")
    page.set_viewport_size(PHONE)
    expect(page.locator("#utilization-error")).to_contain_text("no GPU computes more")
    expect(page.locator("#plan-refused")).to_contain_text("Please correct")
    page.locator("#utilization").fill("50")
    assert_shows(page, {"utilization": "50"})
    expect(page.locator("#plan-refused")).to_be_hidden()
    page.get_by_role("button", name="Add another GPU").click()
    number = page.locator(".counts__row input")
    number.fill("")
    expect(page.locator("#more_gpus-error")).to_contain_text("must be a whole number from 1")
    expect(page.locator("#plan-refused")).to_contain_text("Volunteers with other GPUs")
    number.fill("4")
    assert_shows(page, {"utilization": "50", "more_gpus": "p100:4"})
    page.get_by_role("button", name="Reset to the defaults").click()
    assert_shows(page, {})


def test_rows_of_gpus_fit_the_window_and_axe_finds_nothing(visit: Visitor) -> None:
    state = {"more_gpus": "rtx-4060-ti-16:1000,a100-80:2"}
    page = visit().open(f"plan/?more_gpus={state['more_gpus']}")
    page.evaluate(END_TRANSITIONS)
    page.evaluate(AXE.read_text("utf-8"))
    for width in (1440, 320):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FITS, arg=width)
        assert_shows(page, state)
    assert findings(page) == []
