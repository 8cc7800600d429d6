"""The plan as a program, on the calculator's page."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visitor, settled
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]


def python_writes(**params: str) -> str:
    """CPython's program for a state."""
    return str(ask("code", **params)["value"]["program"])


def unfold(page: Page) -> None:
    """Open the section, and wait for the program of the present state."""
    page.locator("#calculator-program > summary").click()
    written(page)


def written(page: Page) -> None:
    page.wait_for_selector("#calculator-program:not([aria-busy])")


def shown(page: Page) -> str:
    return page.locator("#program-text").text_content() or ""


def test_the_program_follows_the_plan_and_is_copied_with_the_keyboard(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("calculator/?model=gpt2-l")
    settled(page)
    unfold(page)
    assert shown(page) == python_writes()
    page.locator("#batch_size").fill("4")
    settled(page)
    written(page)
    expect(page.locator("#program-text")).to_contain_text("(4, 1024)")
    assert shown(page) == python_writes(batch_size="4")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#program-copy").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#program-copy + [role='status']")).to_have_text("Copied")
    expect(page.locator("#program-copy")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == shown(page)
    assert visitor.errors == []


def test_a_plan_without_a_program_says_why(visit: Visitor) -> None:
    page = visit().open("calculator/?model=bert-base&checkpointing=full")
    settled(page)
    unfold(page)
    assert shown(page) == python_writes(model="bert-base", checkpointing="full")
    page = visit().open("calculator/?reversible=true")
    settled(page)
    unfold(page)
    note = page.locator(".program__note")
    expect(note).to_contain_text("There is no program for these choices. Reversible layers")
    expect(page.locator("#program-text")).to_be_hidden()
    expect(page.locator("#program-copy")).to_be_hidden()
