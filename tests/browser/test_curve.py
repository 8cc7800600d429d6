"""The whole step as a curve, with its cursor."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visitor, settled
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]


def opened(page: Page) -> None:
    """Unfold the curve and wait until it is drawn."""
    page.locator("#calculator-curve > summary").click()
    drawn(page)


def drawn(page: Page) -> None:
    """Wait for the curve of the form's present state."""
    page.wait_for_selector("#calculator-curve:not([aria-busy])")


def python_draws(**params: str) -> dict[str, Any]:
    """CPython's curve of a state."""
    return ask("curve", **params)["value"]


def text_at(curve: dict[str, Any], place: int) -> str:
    """The words of the cursor at a point."""
    point = curve["points"][place]
    return f"{point['total']}. {curve['names'][point['name']]}, {point['time']}"


def test_it_opens_at_the_peak_with_pythons_words_and_follows_the_form(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("calculator/?model=gpt2-s")
    settled(page)
    page.locator("#batch_size").fill("3")  # while it is closed
    settled(page)
    opened(page)
    curve = python_draws(model="gpt2-s", batch_size="3")
    peak = curve["points"][curve["peak"]]
    slider = page.locator("#calculator-curve [role=slider]")
    expect(slider).to_have_attribute("aria-valuetext", text_at(curve, curve["peak"]))
    expect(slider).to_have_attribute("aria-valuemax", str(len(curve["points"]) - 1))
    expect(page.locator("[data-curve=total]")).to_have_text(peak["total"])
    rows = page.locator(".curve__largest > li")
    expect(rows).to_have_count(len(peak["largest"]))
    kind, count, size = peak["largest"][0]
    words = f"{size} {count} × {curve['kinds'][kind]}" if count > 1 else curve["kinds"][kind]
    expect(rows.first).to_contain_text(words)
    expect(page.locator(".curve__summary > li")).to_have_text(curve["summary"])
    expect(page.locator(".curve__note")).to_have_text(curve["note"])
    times = [time["text"] for time in curve["times"]]
    assert times[0] == "0 ms"
    expect(page.locator(".curve__times > span")).to_have_text(times)
    parts = page.locator("[data-curve=part]").all_text_contents()
    assert parts == peak["parts"]
    before = page.locator(".curve path").nth(3).get_attribute("d")
    page.locator("#batch_size").fill("2")
    settled(page)
    drawn(page)
    assert page.locator(".curve path").nth(3).get_attribute("d") != before
    summary = python_draws(model="gpt2-s", batch_size="2")["summary"]
    expect(page.locator(".curve__summary > li")).to_have_text(summary)
    assert visitor.errors == []


def test_keys_and_the_pointer_move_the_cursor(visit: Visitor) -> None:
    page = visit().open("calculator/?model=gpt2-s")
    settled(page)
    opened(page)
    curve = python_draws(model="gpt2-s")
    slider = page.locator("#calculator-curve [role=slider]")
    slider.focus()
    last = len(curve["points"]) - 1
    for key, place in (
        ("Home", 0),
        ("ArrowLeft", 0),
        ("ArrowRight", 1),
        ("ArrowUp", 2),
        ("ArrowDown", 1),
        ("End", last),
        ("ArrowRight", last),
    ):
        page.keyboard.press(key)
        expect(slider).to_have_attribute("aria-valuenow", str(place))
        expect(slider).to_have_attribute("aria-valuetext", text_at(curve, place))
    page.keyboard.press("Home")
    layers = []
    for _ in range(3):
        page.keyboard.press("PageUp")
        layers.append(curve["points"][int(slider.get_attribute("aria-valuenow") or 0)]["layer"])
    assert layers == [f"layer {number} of 12" for number in (1, 2, 3)]
    page.keyboard.press("PageDown")
    now = int(slider.get_attribute("aria-valuenow") or 0)
    assert curve["points"][now]["layer"] == "layer 2 of 12"
    assert curve["points"][now - 1]["layer"] == "layer 1 of 12"
    page.get_by_role("button", name="Go to the peak").click()
    expect(slider).to_have_attribute("aria-valuenow", str(curve["peak"]))
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    for share in (0.25, 0.98):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        now = int(slider.get_attribute("aria-valuenow") or 0)
        begins = [point["x"] for point in curve["points"]] + [1]
        assert begins[now] - 0.004 <= share <= begins[now + 1] + 0.004
