"""The calculator before Python answers: it shows its own figures, quiet ones, or none."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from templates.pages.calculator.context import OPENING
from tests.browser.visits import Visit, Visitor, choose_model, unfold
from tests.calculator.plans import advise, ask

pytestmark = pytest.mark.browser

# What stands in the answer at each paint from the first one on.
WATCH = """
window.seen = [];
const look = () => {
  const answer = document.querySelector("#calculator-answer");
  if (answer && getComputedStyle(answer).visibility === "visible")
    window.seen.push(answer.querySelector("#calculator-verdict").textContent.trim());
  requestAnimationFrame(look);
};
look();
"""

# Whether the verdict has the second rank's color, and the hatched edge is there.
QUIET = """() => {
  const find = (selector) => document.querySelector(selector);
  const [verdict, note] = [find("#calculator-verdict strong"), find(".answer__note")];
  const answer = find("#calculator-answer");
  const hatched = getComputedStyle(answer, "::before").backgroundImage.includes("gradient");
  return hatched && getComputedStyle(verdict).color === getComputedStyle(note).color;
}"""


def without_python(visitor: Visit) -> Visit:
    """A visitor whose Python never comes."""
    visitor.page.route("**/pyodide.asm.wasm", lambda route: None)
    visitor.page.add_init_script(WATCH)
    return visitor


def verdict(**params: str) -> str:
    return ask("answer", **params)["value"]["verdict"]["text"]


def is_quiet(page: Page) -> bool:
    """True if the verdict's words have the color of words that are not for these choices."""
    return page.evaluate(QUIET)


def test_the_defaults_figures_stand_in_full_color_until_the_form_is_edited(
    visit: Visitor,
) -> None:
    page = without_python(visit()).open("calculator/")
    page.wait_for_selector("#calculator-form[data-mounted]")
    expect(page.locator("#calculator-verdict")).to_have_text(verdict(**OPENING))
    assert not is_quiet(page)
    page.locator("#batch_size").fill("64")
    assert is_quiet(page)
    page.get_by_role("button", name="Reset").click()


def test_a_shared_address_never_shows_the_defaults_figures(visit: Visitor) -> None:
    page = without_python(visit()).open("calculator/?batch_size=8&utm_source=a")
    page.wait_for_selector("#calculator-form[data-mounted]")
    computing = "Computing … gpt2-l on Tesla T4 16 GB"
    expect(page.locator("#calculator-verdict")).to_have_text(computing)
    assert set(page.locator(".figures [data-text]").all_text_contents()) <= {"–", ""}
    expect(page.locator("#advice-ways li")).to_have_count(0)
    seen = set(page.evaluate("() => window.seen"))
    assert seen <= {computing}


def test_a_models_address_shows_its_own_figures_before_python_is_there(visit: Visitor) -> None:
    model = "t5-3b"
    page = without_python(visit()).open(f"calculator/?model={model}")
    expect(page.locator("#calculator-verdict")).to_have_text(verdict(model=model))
    expect(page.locator("#calculator-answer[data-stale]")).to_have_count(0)
    assert verdict(**OPENING) not in page.evaluate("() => window.seen")
    assert page.input_value("#model") == model
    figures = ask("answer", model=model)["value"]["figures"]
    for element in page.query_selector_all("[data-text]"):
        assert element.text_content() == figures[element.get_attribute("data-text") or ""]
    ways = [way["words"] for way in advise(model=model)["ways"]]
    expect(page.locator("#advice-ways .way__words")).to_have_text(ways)
    choose_model(page, "gpt2-s")
    expect(page.locator("#calculator-verdict")).to_have_text(verdict(model="gpt2-s"))
    assert not is_quiet(page)
    unfold(page)
    page.select_option("#precision", "fp32")
    assert is_quiet(page)


@pytest.mark.parametrize(
    "state",
    [
        {"model": "Qwen/Qwen3-14B", "preset": "lora", "gpu": "rtx-4090"},
        {"model": "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "preset": "qlora"},
    ],
)
def test_a_popular_model_with_a_preset_has_its_verdict_before_python(
    visit: Visitor, state: dict[str, str]
) -> None:
    page = without_python(visit()).open(f"calculator/?{urlencode(state)}")
    expect(page.locator("#calculator-verdict")).to_have_text(verdict(**state))
    fit = ask("answer", **state)["value"]["verdict"]["state"]
    expect(page.locator("#calculator-verdict")).to_have_attribute("data-fit", fit)
    assert not is_quiet(page)
    assert set(page.locator(".figures [data-text]").all_text_contents()) <= {"–", ""}
    page.locator("#batch_size").fill("64")
    expect(page.locator("#calculator-verdict")).to_contain_text("Computing …")
    assert is_quiet(page)


def test_another_model_has_a_verdict_by_bounds_before_python(visit: Visitor) -> None:
    state = {"model": "nvidia/Qwen2.5-7B-Instruct-NVFP4", "preset": "qlora", "gpu": "l40s"}
    page = without_python(visit()).open(f"calculator/?{urlencode(state)}")
    words = "Fits. Needs at most "
    expect(page.locator("#calculator-verdict")).to_contain_text(words)
    expect(page.locator("#calculator-verdict")).to_contain_text(", your L40S has 45.0.")
    assert verdict(**state).startswith("Fits. Needs")
    assert not is_quiet(page)
