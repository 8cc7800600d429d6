"""Advice on what would make a step fit, and the comparison with a pinned state."""

from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Page, expect

from templates.pages.calculator.context import SLIDERS
from tests.browser.visits import Visitor, advised, open_address, open_calculator, settled
from tests.calculator.plans import advise, ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]


def shown_ways(page: Page) -> list[list[str | None]]:
    return page.eval_on_selector_all(
        "#advice-ways > li",
        "(rows) => rows.map((row) => [...['words', 'need', 'details'].map((part) =>"
        " row.querySelector(`[data-part=${part}]`).textContent),"
        " row.firstElementChild.dataset.query ?? null])",
    )


def ways_of(**params: str) -> list[list[str | None]]:
    return [
        [way["words"], way["need"], way["details"], way["query"]]
        for way in advise(**params)["ways"]
    ]


@pytest.mark.one_python(advice=True)
def test_ways_are_unfolded_and_one_is_taken_and_undone_from_the_keyboard(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor)
    advised(page)
    assert shown_ways(page) == ways_of()
    rows, more = page.locator("#advice-ways > li"), page.locator("#advice-more")
    expect(more).to_have_text(f"Show {len(ways_of()) - 4} more")
    expect(rows.filter(visible=True)).to_have_count(4)
    more.click()
    expect(rows.filter(visible=True)).to_have_count(len(ways_of()))
    expect(rows.nth(4).locator("button")).to_be_focused()
    way = page.locator("#advice-ways button").first
    expect(way).to_contain_text("Keep the optimizer's states in 8 bits")
    way.focus()
    page.keyboard.press("Enter")
    advised(page)
    assert page.url.endswith("?model=gpt2-l&optimizer_bits=8")
    expect(page.locator("#optimizer_bits")).to_have_value("8")
    expect(page.locator("#calculator-verdict")).to_have_attribute("data-fit", "fits")
    expect(page.locator("#advice-status")).to_contain_text("Done: Keep the optimizer's states")
    assert shown_ways(page) == ways_of(optimizer_bits="8")
    expect(page.locator("#advice-undo")).to_be_focused()
    page.keyboard.press("Enter")
    advised(page)
    assert page.url.endswith("?model=gpt2-l")
    assert shown_ways(page) == ways_of()
    expect(page.locator("#advice-undo")).to_be_hidden()
    assert visitor.errors == []


@pytest.mark.one_python(advice=True)
def test_the_newest_states_advice_is_what_stays(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=t5-small")
    slider = page.locator("input[type=range][name=batch_size]")
    stops = SLIDERS["batch_size"]
    for place in range(1, stops.index(12) + 1):
        slider.fill(str(place))
    page.select_option("#gpu", "rtx-3060")
    advised(page)
    assert shown_ways(page) == ways_of(model="t5-small", batch_size="12", gpu="rtx-3060")


def test_a_pinned_state_is_compared_shared_and_unpinned(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor, "checkpointing=full")
    pinned = ask("answer", checkpointing="full")["value"]
    page.get_by_role("button", name="Pin these choices to compare").click()
    expect(page.get_by_role("button", name="Unpin")).to_be_focused()
    page.locator("#batch_size").fill("4")
    settled(page)
    second = page.locator(".figures__total [data-text='baseline.gpu.peak']")
    for is_shared in (False, True):
        if is_shared:
            open_address(visitor)
        expect(second).to_have_text(pinned["figures"]["report.gpu.peak"])
        expect(page.locator("[data-text='beside.words']")).to_have_text(
            "Pinned: micro-batch 1 (now 4)."
        )
        query = dict(parse_qsl(page.url.partition("?")[2]))
        assert query["pin"] == pinned["pin"]
    page.get_by_role("button", name="Unpin").click()
    settled(page)
    assert page.url.endswith("?model=gpt2-l&batch_size=4&checkpointing=full")
    expect(page.locator("thead [data-text='beside.title']")).to_have_text("Without techniques")


def test_a_pinned_state_that_cannot_be_is_dropped(visit: Visitor) -> None:
    page = open_calculator(visit(), "batch_size=2&pin=model%3Dnothing")
    expect(page.locator("#calculator-refused")).to_be_hidden()
    assert page.url.endswith("?model=gpt2-l&batch_size=2")


MOVE = """(stop) => {
  const slider = document.querySelector("input[type=range][name=batch_size]");
  slider.value = String(stop);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""
FRAME_MS = 16
PAUSE_MS = 150
NOTE_QUESTIONS = """
window.asked = {};
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (question, ...others) {
  const { method } = JSON.parse(question);
  window.asked[method] = (window.asked[method] ?? 0) + 1;
  return postMessage.call(this, question, ...others);
};
"""


def test_the_answer_and_the_search_for_advice_wait_for_the_end_of_a_drag(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 1280, "height": 720})
    page = visitor.page
    page.clock.install()  # so that a drag on a busy machine is one, too
    page.add_init_script(NOTE_QUESTIONS)
    visitor.open("calculator/?model=t5-small")
    advised(page)
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    last = SLIDERS["batch_size"].index(12)
    before = _asked(page)
    for stop in range(1, last + 1):
        _drag(page, stop)
        assert _asked(page) == before
    page.clock.run_for(PAUSE_MS)
    page.clock.resume()
    advised(page)
    assert all(now > then for now, then in zip(_asked(page), before, strict=True))
    assert shown_ways(page) == ways_of(model="t5-small", batch_size="12")
    page.wait_for_url("**/calculator/?model=t5-small&batch_size=12")


def _drag(page: Page, stop: int) -> None:
    """Move the slider a frame later, and await the figures."""
    page.clock.run_for(FRAME_MS)
    shown = page.get_attribute("#calculator-answer", "data-figures-id")
    page.evaluate(MOVE, stop)
    page.wait_for_selector(f"#calculator-answer:not([data-figures-id='{shown}'])")


def _asked(page: Page) -> list[int]:
    """Questions for whole answers, and for advice, so far."""
    both = "['answer', 'advise']"
    return page.evaluate(f"() => {both}.map((one) => window.asked[one] ?? 0)")
