"""The tables of models and GPUs: sorted by pointer, keyboard and list, and read without script."""

import pytest
from playwright.sync_api import Page, expect

from templates.pages.models_on_gpus.context import ON_A_PHONE, SHOWN
from tests.browser.visits import Visitor

pytestmark = pytest.mark.browser

PAGE = "models-on-gpus/"


FULL, LORA = ".switched__table--full", ".switched__table--lora"


def column(page: Page, place: int, table: str = FULL) -> list[int]:
    """Sort values of a column, from top to bottom."""
    return page.eval_on_selector_all(
        f"{table} tbody tr > :nth-child({place + 1})",
        "(cells) => cells.map((cell) => Number(cell.dataset.value))",
    )


def test_a_heading_sorts_and_turns_round(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open(PAGE)
    heading = page.locator(f"{FULL} thead th").nth(3)
    button = heading.get_by_role("button")
    button.click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert column(page, 3) == sorted(column(page, 3))
    button.focus()
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert column(page, 3) == sorted(column(page, 3), reverse=True)
    expect(page.locator(f"{FULL} [aria-sort]")).to_have_count(1)
    before = column(page, 3)
    page.get_by_label("LoRA", exact=True).check()
    button = page.locator(f"{LORA} thead th").nth(3).get_by_role("button")
    button.click()
    button.click()
    assert column(page, 3, LORA) == sorted(column(page, 3, LORA), reverse=True)
    assert column(page, 3) == before, "the other table is sorted alone"
    assert visitor.errors == []


def test_on_a_phone_a_list_sorts_and_one_card_is_shown_until_another_is_chosen(
    visit: Visitor,
) -> None:
    page = visit(viewport={"width": 390, "height": 800}).open(PAGE)
    mine = page.get_by_label("What can my card train?")
    expect(mine).to_have_value(ON_A_PHONE)
    cells = page.locator(f"{FULL} tbody tr").first.locator(".on-gpu:visible")
    expect(cells).to_have_count(1)
    assert page.evaluate("() => document.documentElement.scrollHeight") <= 6000
    page.locator(FULL).get_by_label("Sort by").select_option(label="Parameters")
    assert column(page, 1) == sorted(column(page, 1))
    page.locator(FULL).get_by_role("button", name="Reverse the order").click()
    assert column(page, 1) == sorted(column(page, 1), reverse=True)
    mine.select_option("")
    expect(cells).to_have_count(len(SHOWN))


def test_a_card_is_asked_what_it_trains(visit: Visitor) -> None:
    page = visit().open(PAGE + "?card=t4")
    expect(page.get_by_label("What can my card train?")).to_have_value("t4")
    shown = page.locator(f"{FULL} thead th:visible")
    expect(shown).to_have_count(5)  # model, parameters, tokens, peak, and the card
    expect(shown.last).to_contain_text("T4")
    place = 4 + SHOWN.index("t4")
    ranks = column(page, place)
    assert ranks == sorted(ranks)
    first = page.locator(f"{FULL} tbody tr").first
    expect(first.get_by_role("rowheader")).to_contain_text("gemma-3-270m")  # the newest that fits
    page.get_by_label("What can my card train?").select_option("")
    expect(shown).to_have_count(4 + len(SHOWN))
    assert column(page, 0) == sorted(column(page, 0))


def test_a_switch_shows_the_table_of_adapters_without_a_script(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open(PAGE)
    expect(page.locator(FULL)).to_be_visible()
    expect(page.locator(LORA)).to_be_hidden()
    page.get_by_label("LoRA", exact=True).focus()
    page.keyboard.press("Space")
    expect(page.locator(LORA)).to_be_visible()
    expect(page.locator(FULL)).to_be_hidden()
    page.get_by_label("LoRA", exact=True).press("ArrowLeft")
    expect(page.locator(FULL)).to_be_visible()
