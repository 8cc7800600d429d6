"""Five questions of new visitors: the answer stands where they first look, without scrolling."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import new_context, noting
from tests.browser.visits import (
    Return,
    Visit,
    Visitor,
    advised,
    python_advises,
    python_answers,
)

pytestmark = pytest.mark.browser

WINDOWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
# a decoder as small as its maker's first try: 2 layers of width 64
CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 1000}


@pytest.fixture(params=WINDOWS, scope="module")
def window(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A desktop's and a phone's."""
    return WINDOWS[request.param]


@pytest.fixture(scope="module")
def calculator(window: dict[str, Any], browser: Browser, site_address: str) -> Iterator[Visit]:
    """A visitor of the calculator with that window, whose Python starts once."""
    with new_context(browser, **window) as context:
        yield noting(Return(context.new_page(), site_address))


def choose(page: Page, typed: str, gpu: str) -> None:
    """Choose a model as a visitor types it, and a GPU; then look at the top of the page again."""
    page.locator("#model").fill(typed)
    page.locator("#model-list [role=option]:visible").first.click()
    page.locator("#gpu").select_option(gpu)


def stands(locator: Locator, words: str) -> None:
    """The words are on the page, and on the screen."""
    expect(locator).to_contain_text(words)
    expect(locator).to_be_in_viewport()


def verdict_stands(page: Page, window: dict[str, Any], state: dict[str, str]) -> dict[str, Any]:
    """The state's verdict is on the screen, beside the form or, on a phone, below it."""
    advised(page)
    value: dict[str, Any] = python_answers("answer", state)["value"]
    place = ".summary" if window.get("is_mobile") else "#calculator-verdict"
    stands(page.locator(place), value["verdict"]["sum"])
    return value


def test_qwen3_8b_with_lora_on_a_card_of_24_gb(calculator: Visit, window: dict[str, Any]) -> None:
    page = calculator.open("calculator/")
    choose(page, "qwen3-8b", "rtx-4090")
    page.get_by_role("radio", name="Full").check(force=True)
    state = {"model": "Qwen/Qwen3-8B", "gpu": "rtx-4090", "preset": "full"}
    value = verdict_stands(page, window, state)
    assert value["verdict"]["state"] == "does not fit"
    ways = python_advises(state)["ways"]
    (place, way) = next((i, way) for i, way in enumerate(ways) if "LoRA" in way["words"])
    assert place < 4  # the others are folded
    row = page.locator("#advice-ways button").nth(place)
    expect(row).to_contain_text(way["words"])
    if not window.get("is_mobile"):
        expect(row).to_be_in_viewport()
    row.click()
    expect(page.locator("#calculator-verdict")).to_have_attribute("data-fit", "fits")


def test_the_home_page_answers_qwen3_8b_at_once(visit: Visitor, window: dict[str, Any]) -> None:
    page = visit(**window).open()
    page.locator("#fit-model").select_option("Qwen/Qwen3-8B")
    page.locator("#fit-gpu").select_option("rtx-4090")
    stands(page.locator("[data-fit-answer]"), "Fits if you train LoRA adapters")


def test_llama_70b_on_eight_a100s(calculator: Visit, window: dict[str, Any]) -> None:
    page = calculator.open("calculator/")
    choose(page, "llama 3.1 70b", "a100-80")
    page.get_by_role("radio", name="Full").check(force=True)
    page.locator("summary", has_text="Expert").click()
    page.locator("summary", has_text="Several GPUs").click()
    page.locator("#gpus").fill("8")
    state = {"model": "meta-llama/Llama-3.1-70B", "gpu": "a100-80", "preset": "full", "gpus": "8"}
    value = verdict_stands(page, window, state)
    assert value["verdict"]["state"] == "does not fit"
    ways = python_advises(state)["ways"]
    place = next(i for i, way in enumerate(ways) if "Use 8 of this GPU" in way["words"])
    assert place < 4  # the others are folded
    row = page.locator("#advice-ways button").nth(place)
    expect(row).to_contain_text(ways[place]["words"])
    if not window.get("is_mobile"):
        expect(row).to_be_in_viewport()


def test_the_2021_run_on_a_t4(calculator: Visit, window: dict[str, Any]) -> None:
    page = calculator.open("calculator/")
    page.get_by_role("button", name="DALL-E").click()
    value = verdict_stands(page, window, {"model": "dalle-together", "gpu": "t4"})
    assert value["verdict"]["state"] == "fits"


def test_a_config_json_of_ones_own(calculator: Visit, window: dict[str, Any]) -> None:
    page = calculator.open("calculator/")
    summary = page.locator(".form__config summary")
    expect(summary).to_be_in_viewport()
    summary.click()
    page.locator("#config").fill(json.dumps(CONFIG))
    page.get_by_role("radio", name="Full").check(force=True)
    value = verdict_stands(page, window, {"config": json.dumps(CONFIG), "preset": "full"})
    assert value["verdict"]["state"] == "fits"
    # 1,000 x 64 + 1,024 x 64 embeddings, 2 layers of 12 x 64^2 + 13 x 64, a last norm of 2 x 64
    assert value["report"]["parameters"] == 2024 * 64 + 2 * (12 * 64**2 + 13 * 64) + 128


def test_a_billion_tokens_by_20_volunteers_at_50_megabits(
    visit: Visitor, window: dict[str, Any]
) -> None:
    page = visit(**window).open("plan/")
    for field, number in {"billion_tokens": "1", "volunteers": "20", "up": "50"}.items():
        page.locator(f"#{field}").fill(number)
    page.locator("#down").fill("50")
    expect(page.locator("#plan .answer")).to_have_attribute("aria-busy", "false")
    value = python_answers("plan", {})["value"]
    time = value["figures"]["time"]
    assert time.endswith(" h")
    place = ".summary" if window.get("is_mobile") else "#plan .verdict"
    stands(page.locator(place), time)
    if not window.get("is_mobile"):
        stands(page.locator(".plan__subject"), "1 billion tokens, 20 volunteers")
