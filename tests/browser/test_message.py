"""An out-of-memory message, pasted on the calculator's page."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visitor, settled
from tests.calculator.planner.test_out_of_memory import OLDER, PRESENT
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]


def python_explains(message: str, **params: str) -> dict[str, Any]:
    """CPython's explanation of a message for a state."""
    return ask("explain", **params, message=message)["value"]


def explained(page: Page) -> None:
    """Wait for Python's words about the pasted text."""
    page.wait_for_selector("#calculator-message:not([aria-busy])")


def shows(page: Page, value: dict[str, Any]) -> None:
    """The page has Python's rows and findings."""
    titles = [finding["title"] for finding in value["findings"]]
    expect(page.locator(".message__findings strong")).to_have_text(titles)
    rows = [row["text"] for row in [*value["rows"], value["plan"]]]
    expect(page.locator(".message__rows dd")).to_have_text(rows)


def test_a_message_is_explained_beside_the_plan_as_it_changes(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("calculator/?model=gpt2-l")
    settled(page)
    page.locator("#calculator-message > summary").click()
    page.locator("#message").fill(PRESENT)
    explained(page)
    shows(page, python_explains(PRESENT))
    page.get_by_role("button", name="Compare with the GPU of the message.").click()
    settled(page)
    explained(page)
    assert "gpu_memory=31.47" in page.url
    shows(page, python_explains(PRESENT, gpu_memory="31.47"))
    assert visitor.errors == []


def test_advice_is_one_link_away_and_what_is_missing_is_said_beside_the_text(
    visit: Visitor,
) -> None:
    page = visit().open("calculator/?batch_size=8")
    settled(page)
    page.locator("#calculator-message > summary").click()
    text = page.locator("#message")
    text.fill(OLDER)
    explained(page)
    page.get_by_role("link", name="See what would make it fit.").click()
    expect(page.locator("#advice")).to_be_in_viewport()
    expect(page.locator("#advice")).to_be_focused()
    text.fill("CUDA error: device-side assert")
    expect(page.locator("#message-error")).to_contain_text("Tried to allocate")
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".message__answer")).to_be_hidden()
    text.fill("")
    expect(page.locator("#message-error")).to_be_hidden()
    expect(text).not_to_have_attribute("aria-invalid", "true")
