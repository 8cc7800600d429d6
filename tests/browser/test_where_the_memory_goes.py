"""'Where the memory goes': a model and a GPU are chosen by keyboard, and stand in the address."""

import re

import pytest
from playwright.sync_api import Page, expect

from templates.pages.numbers.choices import choices
from templates.pages.numbers.figures import Figures, figures
from tests.browser.visits import Visitor

pytestmark = pytest.mark.browser

PAGE = "numbers/"
CHOICES = choices()
FIRST = CHOICES[0]
OTHER = next(one for one in CHOICES if one.name == "Qwen3-0.6B.rtx-3060")
ADDRESS = re.compile(r"\?model=Qwen%2FQwen3-0\.6B&gpu=rtx-3060$")


def shows(page: Page, expected: Figures) -> None:
    """Expect the figures of a choice, in every place."""
    for place, html in expected.items():
        own = page.evaluate(
            "(html) => Object.assign(document.createElement('div'), {innerHTML: html}).textContent",
            html,
        )
        expect(page.locator(f"[data-figures={place}]")).to_have_text(own)


def test_a_choice_by_keyboard_changes_every_figure(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 1440, "height": 900})
    page = visitor.open(PAGE)
    model, gpu = page.get_by_label("Model", exact=True), page.get_by_label("GPU", exact=True)
    expect(model).to_be_enabled()
    shows(page, figures(FIRST))
    heading = page.locator("#savings")
    heading.evaluate("(one) => one.scrollIntoView()")
    before = heading.bounding_box()
    expect(model).to_be_in_viewport()  # the choice stays in view
    model.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # the last choice counts
    page.keyboard.press("Tab")
    expect(gpu).to_be_focused()
    page.keyboard.press("ArrowDown")
    status = page.locator(".numbers__choice [role=status]")
    expect(status).to_have_text("Every figure is now for Qwen3-0.6B on RTX 3060 12 GB.")
    shows(page, figures(OTHER))
    expect(page).to_have_url(ADDRESS)
    after = heading.bounding_box()
    assert before
    assert after
    assert after["y"] == pytest.approx(before["y"], abs=2)  # what is read stays where it is
    page.reload()
    expect(model).to_have_value(OTHER.model.name)
    shows(page, figures(OTHER))
    expect(page).to_have_url(ADDRESS)
    link = page.locator("[data-figures=plan] a")
    expect(link).to_have_attribute("href", re.compile(r"model=Qwen%2FQwen3-0\.6B.*gpu=rtx-3060"))
    assert visitor.errors == []


def test_figures_that_do_not_come_leave_the_choice_as_it_was(visit: Visitor) -> None:
    page = visit().open(PAGE)
    page.route("**/numbers/*.json", lambda route: route.abort())
    page.get_by_label("GPU", exact=True).select_option(OTHER.card.name)
    expect(page.get_by_text("could not be loaded")).to_be_visible()
    expect(page.get_by_label("GPU", exact=True)).to_have_value(FIRST.card.name)
    shows(page, figures(FIRST))


def test_without_script_the_page_has_the_figures_of_its_first_choice(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open(PAGE)
    expect(page.locator(".numbers__choice")).to_be_hidden()
    expect(page.locator("[data-figures=plan]")).to_contain_text(FIRST.model.title)
