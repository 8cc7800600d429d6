"""Figures that are not those of the form's present state: marked, and as easy to read."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_every_page import AXE, END_TRANSITIONS, SCHEME, findings
from tests.browser.visits import Visitor, advised, open_calculator, settled, unfold

pytestmark = [pytest.mark.browser, pytest.mark.one_python(advice=True)]

# The parts of the answer that are marked on their own, and words in each.
WORDS = {
    "#advice-ways": ".way__words",
    "#calculator-frontier .frontier": "button:enabled strong",
    "#calculator-curve .curve__body": "[data-curve=total]",
    "#calculator-program .program": "#program-text",
}
# The lowest contrast of words that axe finds in places.
LOWEST = """async (places) => {
  const {passes, violations} = await axe.run(places, {runOnly: ["color-contrast"]});
  const nodes = [...passes, ...violations].flatMap((rule) => rule.nodes);
  const checks = nodes.flatMap(({any}) => any);
  return Math.min(...checks.map(({data}) => data?.contrastRatio ?? Infinity));
}"""
EDGE = "(element) => getComputedStyle(element, '::before').backgroundImage"
COLOR = "(element) => getComputedStyle(element).color"


def drawn(page: Page) -> None:
    """Wait until all that unfolds shows the form's present state."""
    advised(page)
    for place in ("frontier", "curve", "program"):
        page.wait_for_selector(f"#calculator-{place}:not([aria-busy])")


def test_stale_figures_are_marked_and_keep_their_contrast(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=gpt2-s")
    unfold(page)
    page.evaluate(END_TRANSITIONS)
    page.evaluate(AXE.read_text("utf-8"))
    for scheme, width in (("slate", 390), ("default", 1440)):
        page.evaluate(SCHEME, scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert_marked(page)
        page.locator("#batch_size").fill("1")


def assert_marked(page: Page) -> None:
    """Refused choices mark all that is another state's, in colors that can be read."""
    drawn(page)
    fresh = {place: page.locator(f"{place} {words}").first for place, words in WORDS.items()}
    before = {place: words.evaluate(COLOR) for place, words in fresh.items()}
    assert page.locator("#calculator-answer").evaluate(EDGE) == "none"
    page.locator("#batch_size").fill("0")  # refused, so the figures stay another state's
    settled(page)
    expect(page.locator("#calculator-answer[data-stale]")).to_have_count(1)
    assert "gradient" in page.locator("#calculator-answer").evaluate(EDGE)
    for place, words in fresh.items():
        assert words.evaluate(COLOR) != before[place], place
    assert page.evaluate(LOWEST, ["#calculator-answer", *fresh]) >= 4.5
    assert findings(page, "color-contrast") == []
