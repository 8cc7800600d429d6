"""The page's figures are Python's, byte for byte."""

from typing import Any

import pytest
from playwright.sync_api import Page

from calculator.plan import Plan
from templates.pages.calculator.context import OPENING
from tests.browser.states import random_states
from tests.browser.visits import Visitor, open_calculator, python_answers, settled

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

# Put a state into the form as hands would: each control gets its value and says so.
FILL_IN = """(state) => {
  const form = document.querySelector("#calculator-form");
  const say = (control) => control.dispatchEvent(new Event("input", {bubbles: true}));
  const set = (name, value) => {
    const control = form.querySelector(`[data-for="${name}"]`) ?? form.elements.namedItem(name);
    if (control.type === "checkbox") control.checked = value === "true";
    else control.value = value;
    say(control);
  };
  form.reset();
  form.querySelector(".family[data-model='gpt2-l']").click(); // a state without a preset
  form.querySelector(`#model-list [data-value="${state.model}"]`).click();
  if ("gpu_memory" in state) set("gpu", "");
  for (const [name, value] of Object.entries(state)) if (name !== "model") set(name, value);
}"""

SHOWN = """() => ({
  texts: [...document.querySelectorAll("[data-text]")].map((e) => [e.dataset.text, e.textContent]),
  lengths: [...document.querySelectorAll("[data-lengths]")].flatMap((element) =>
    element.dataset.lengths.split(" ").map((pair) => {
      const [name, path] = pair.split(":");
      return [path, element.style.getPropertyValue("--" + name)];
    })),
  savings: [...document.querySelectorAll("#calculator-savings [data-part=gpu]")]
    .map((element) => element.textContent),
  notes: [...document.querySelectorAll("#calculator-notes li")].map((item) => item.textContent),
  command: document.querySelector("#calculator-command").textContent,
  refused: document.querySelector("#calculator-refused").textContent,
  errors: [...document.querySelectorAll(".field__error:not([hidden])")]
    .map((place) => [place.id.replace("-error", ""), place.textContent]),
})"""


def look_up(value: Any, path: str) -> Any:
    """The value at a dotted path of an answer."""
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def said_of(error: dict[str, str]) -> tuple[str, str]:
    """A field, and what the page says of its error: the option's label instead of its name."""
    label = Plan.options()[error["field"]].label
    return error["field"], f"{label} {error['value']}: {error['rule']}."


def assert_same(page: Page, state: dict[str, str]) -> None:
    """The page shows what CPython answers to `state`."""
    answer = python_answers("answer", state)
    if answer["kind"] == "result":  # the address follows a series of edits
        query = answer["value"]["query"]
        page.wait_for_function("(query) => location.search.slice(1) === query", arg=query)
    shown = page.evaluate(SHOWN)
    if answer["kind"] == "error":
        field, words = said_of(answer["error"])
        beside = shown["errors"] == [[field, words]]
        assert beside or (shown["errors"] == [] and words in shown["refused"]), state
        return
    value = answer["value"]
    assert shown["errors"] == [], state
    assert len(shown["texts"]) > 40
    for path, text in shown["texts"]:
        assert text == value["figures"][path], (state, path)
    for path, length in shown["lengths"]:
        assert int(length) == look_up(value, path), (state, path)
    savings = [value["figures"][f"savings.{i}.gpu"] for i in range(len(value["savings"]))]
    assert shown["savings"] == savings, state
    assert shown["notes"] == value["notes"], state
    assert shown["command"] == value["command"], state


def test_figures_of_fifty_random_states_equal_cpythons(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor)
    states = random_states(50)
    allowed = [s for s in states if python_answers("answer", s)["kind"] == "result"]
    assert len(allowed) >= 20
    for state in states:
        page.evaluate(FILL_IN, state)
        settled(page)
        assert_same(page, state)
    assert visitor.errors == []


@pytest.mark.parametrize("state", random_states(4), ids=lambda state: state["model"])
def test_a_shared_address_shows_cpythons_figures(visit: Visitor, state: dict[str, str]) -> None:
    query = "&".join(f"{name}={value}" for name, value in state.items())
    assert_same(open_calculator(visit(), query), state)


def test_the_default_result_is_in_the_page_before_python_is(visit: Visitor) -> None:
    visitor = visit(java_script_enabled=False)
    page = visitor.open("calculator/")
    value = python_answers("answer", OPENING)["value"]
    for element in page.query_selector_all("[data-text]"):
        assert element.text_content() == value["figures"][element.get_attribute("data-text")]
