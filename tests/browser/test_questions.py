"""Questions of new visitors: the answer stands where they first look, without scrolling."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.visits import Visitor, advised, settled
from tests.calculator.plans import advise, ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

DESKTOP = ViewportSize(width=1440, height=900)
PHONE = ViewportSize(width=390, height=844)


def opened(visit: Visitor, path: str) -> Page:
    """A page on a desktop."""
    page = visit().open(path)
    page.set_viewport_size(DESKTOP)
    return page


def choose(page: Page, typed: str, gpu: str) -> None:
    """Choose a model as a visitor types it, and a GPU; then look at the top of the page again."""
    page.locator("#model").fill(typed)
    page.locator("#model-list [role=option]:visible").first.click()
    page.locator("#gpu").select_option(gpu)


def stands(locator: Locator, words: str) -> None:
    """The words are on the page, and on the screen."""
    expect(locator).to_contain_text(words)
    expect(locator).to_be_in_viewport()


def stands_in_both(page: Page, on_a_desktop: str, on_a_phone: str, words: str) -> None:
    """The words are on the screen, beside the form or, on a phone, below it."""
    stands(page.locator(on_a_desktop), words)
    page.set_viewport_size(PHONE)
    stands(page.locator(on_a_phone), words)
    page.set_viewport_size(DESKTOP)


def verdict_stands(page: Page, state: dict[str, str]) -> dict[str, Any]:
    """The state's verdict is on the screen."""
    settled(page)
    value: dict[str, Any] = ask("answer", **state)["value"]
    stands_in_both(page, "#calculator-verdict", ".summary", value["verdict"]["sum"])
    return value


def way_stands(page: Page, state: dict[str, str], words: str) -> Locator:
    """A way to make it fit is on the screen, and not folded."""
    advised(page)
    ways = advise(**state)["ways"]
    (place, way) = next((i, way) for i, way in enumerate(ways) if words in way["words"])
    assert place < 4  # the others are folded
    row = page.locator("#advice-ways button").nth(place)
    stands(row, way["words"])
    return row


@pytest.mark.one_python(advice=True)
def test_qwen3_8b_with_lora_on_a_card_of_24_gb(visit: Visitor) -> None:
    page = opened(visit, "calculator/")
    choose(page, "qwen3-8b", "rtx-4090")
    page.get_by_role("radio", name="Full").check(force=True)
    state = {"model": "Qwen/Qwen3-8B", "gpu": "rtx-4090", "preset": "full"}
    assert verdict_stands(page, state)["verdict"]["state"] == "does not fit"
    way_stands(page, state, "LoRA").click()
    expect(page.locator("#calculator-verdict")).to_have_attribute("data-fit", "fits")


def test_the_home_page_answers_qwen3_8b_at_once(visit: Visitor) -> None:
    page = visit(viewport=DESKTOP).open()
    page.locator("#fit-model").select_option("Qwen/Qwen3-8B")
    page.locator("#fit-gpu").select_option("rtx-4090")
    answer = "[data-fit-answer]"
    stands_in_both(page, answer, answer, "Fits if you train LoRA adapters")


def test_the_2021_run_on_a_t4(visit: Visitor) -> None:
    page = opened(visit, "calculator/")
    expect(page.locator(".form__config summary")).to_be_in_viewport()
    page.set_viewport_size(PHONE)
    expect(page.locator(".form__config summary")).to_be_in_viewport()
    page.set_viewport_size(DESKTOP)
    page.get_by_role("button", name="DALL-E").click()
    value = verdict_stands(page, {"model": "dalle-together", "gpu": "t4"})
    assert value["verdict"]["state"] == "fits"


def test_a_billion_tokens_by_20_volunteers_at_50_megabits(visit: Visitor) -> None:
    page = opened(visit, "plan/")
    for field, number in {"billion_tokens": "1", "volunteers": "20", "up": "50"}.items():
        page.locator(f"#{field}").fill(number)
    page.locator("#down").fill("50")
    expect(page.locator("#plan .answer")).to_have_attribute("aria-busy", "false")
    value = ask("plan")["value"]
    time = value["figures"]["time"]
    assert time.endswith(" h")
    stands(page.locator(".plan__subject"), "1 billion tokens, 20 volunteers")
    stands_in_both(page, "#plan .verdict", ".summary", time)
