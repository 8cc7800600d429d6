"""The model: typed by a part of its name, or given as a config.json."""

import base64
import json
import random
import zlib
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from templates.pages.calculator.context import newest_first
from tests.browser.visits import Visitor, choose_model, open_address, open_calculator, settled
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

SMALL = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 6, "vocab_size": 1009}


def parameters(page: Page) -> str:
    return page.inner_text("#model-help [data-text='report.parameters']")


def give(page: Page, text: str) -> None:
    """Paste a config.json."""
    if not page.locator("#config").is_visible():
        page.locator(".form__config summary").click()
    page.locator("#config").fill(text)
    settled(page)


def python_parameters(**params: str) -> str:
    return str(ask("answer", **params)["value"]["figures"]["report.parameters"])


def test_the_list_has_every_model_under_its_group(visit: Visitor) -> None:
    page = open_calculator(visit())
    page.locator("#model").click()
    expect(page.get_by_role("listbox", name="Models")).to_be_visible()
    found = page.evaluate(
        "() => [...document.querySelectorAll('#model-list [role=group]')].map((group) => ["
        "group.querySelector('.chooser__group').textContent,"
        "[...group.querySelectorAll('[role=option]')].map((option) => option.dataset.value)])"
    )
    expected = [[group, [m.name for m in models]] for group, models in newest_first().items()]
    assert found == expected


def test_a_part_of_a_name_is_enough_and_arrow_keys_go_round_the_list(visit: Visitor) -> None:
    page = open_calculator(visit())
    model = page.locator("#model")
    model.click()
    page.keyboard.type("robert LARGE")
    expect(model).to_have_attribute("aria-expanded", "true")
    shown = page.locator("#model-list [role='option']:visible")
    assert {"bert" in text.lower() for text in shown.all_inner_texts()} == {True}
    active = model.get_attribute("aria-activedescendant")
    expect(page.locator(f"#{active}")).to_have_attribute("data-value", "FacebookAI/roberta-large")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    settled(page)
    expect(model).to_have_value("FacebookAI/roberta-large")
    expect(model).to_have_attribute("aria-expanded", "false")
    assert page.url.endswith("?model=FacebookAI%2Froberta-large")
    assert parameters(page) == python_parameters(model="FacebookAI/roberta-large")
    model.click()
    page.keyboard.type("t5-")
    ids = [option.get_attribute("id") or "" for option in shown.all()]
    assert len(ids) > 2
    expect(model).to_have_attribute("aria-activedescendant", ids[0])
    for key, place in (("ArrowUp", -1), ("ArrowUp", -2), ("ArrowDown", -1), ("ArrowDown", 0)):
        page.keyboard.press(key)
        expect(model).to_have_attribute("aria-activedescendant", ids[place])
    expect(page.locator("#model-list [data-active]")).to_have_count(1)


def test_a_model_is_chosen_with_the_mouse(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=t5-small")
    model = page.locator("#model")
    model.click()
    chosen = page.locator("#model-list [aria-selected='true']")
    expect(chosen).to_have_attribute("data-value", "t5-small")
    page.keyboard.type("bert")
    page.locator("#model-list [data-value='bert-base']").click()
    settled(page)
    expect(model).to_have_value("bert-base")
    expect(model).to_be_focused()
    expect(page.locator("#model-list")).to_be_hidden()
    assert page.url.endswith("?model=bert-base")
    assert parameters(page) == python_parameters(model="bert-base")


def test_leaving_the_field_chooses_a_whole_name_alone_and_leaving_the_list_none(
    visit: Visitor,
) -> None:
    page = open_calculator(visit(), "model=t5-small")
    model = page.locator("#model")
    for typed, leave, chosen in (
        ("bert-l", lambda: page.locator("h1").click(), "t5-small"),
        ("gpt", lambda: page.keyboard.press("Escape"), "t5-small"),
        ("gpt", lambda: page.keyboard.press("Tab"), "t5-small"),
        ("bert-large", lambda: page.locator("h1").click(), "bert-large"),
    ):
        model.click()
        page.keyboard.type(typed)
        leave()
        settled(page)
        expect(model).to_have_value(chosen)
        expect(page.locator("#model-list")).to_be_hidden()
        assert page.url.endswith(f"?model={chosen}")
        assert parameters(page) == python_parameters(model=chosen)


def test_a_name_that_no_model_has_says_what_to_do(visit: Visitor) -> None:
    page = open_calculator(visit())
    page.locator("#model").click()
    page.keyboard.type("no such thing")
    expect(page.locator(".chooser__none")).to_contain_text("config.json")
    page.keyboard.press("Enter")
    expect(page.locator("#model-error")).to_contain_text("no such thing")
    choose_model(page, "gpt2-l")
    expect(page.locator("#model-error")).to_be_hidden()


def test_a_pasted_config_is_counted_shared_and_left_again(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor, "batch_size=2")
    give(page, json.dumps(SMALL, indent=2))
    expected = python_parameters(config=json.dumps(SMALL), batch_size="2")
    assert parameters(page) == expected
    page.wait_for_url("**/calculator/?batch_size=2#config=*")
    assert "config.json" in page.inner_text("#calculator-command")
    assert parameters(open_address(visitor)) == expected
    assert json.loads(page.input_value("#config")) == SMALL
    choose_model(page, "t5-small")
    settled(page)
    assert {*page.url.partition("?")[2].split("&")} == {"model=t5-small", "batch_size=2"}
    assert visitor.errors == []


def test_a_config_is_dropped_or_chosen_as_a_file_and_one_too_long_is_refused_unread(
    visit: Visitor,
) -> None:
    expected = python_parameters(config=json.dumps(SMALL))
    for content in (b" " * 2_000_001, json.dumps(SMALL).encode()):
        page = open_calculator(visit())
        page.locator(".form__config summary").click()
        file = {"name": "config.json", "mimeType": "application/json", "buffer": content}
        page.set_input_files("#config-file", file)
        if content.isspace():
            expect(page.locator("#config-error")).to_contain_text("at most 2,000,000 characters")
            assert page.input_value("#config") == ""
    expect(page.locator("#model-help [data-text='report.parameters']")).to_have_text(expected)
    page = open_calculator(visit())
    page.evaluate(
        "(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'c.json'));"
        "document.querySelector('#calculator-form').dispatchEvent("
        "new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })); }",
        json.dumps(SMALL),
    )
    expect(page.locator("#model-help [data-text='report.parameters']")).to_have_text(expected)


def test_a_config_is_fetched_from_the_hub_on_a_click_alone(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor)
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        headers = {"Access-Control-Allow-Origin": "*"}
        if "mine" in route.request.url:
            route.fulfill(status=401, headers=headers)
        else:
            route.fulfill(body=json.dumps(SMALL), headers=headers)

    page.route("https://huggingface.co/**", answer)
    page.locator("#config-hub").fill("https://huggingface.co/me/small/tree/main")
    settled(page)
    assert asked == []
    page.locator("#config-fetch").click()
    expected = python_parameters(config=json.dumps(SMALL))
    expect(page.locator("#model-help [data-text='report.parameters']")).to_have_text(expected)
    assert asked == ["https://huggingface.co/me/small/resolve/main/config.json"]
    page.locator("#config-hub").fill("me/mine")
    page.locator("#config-hub").press("Enter")
    expect(page.locator("#config-error")).to_contain_text("me/mine is gated")
    assert len(asked) == 2


# What other Python, or a page, could take harm of; other mistakes are those of the protocol's test.
HOSTILE: dict[str, tuple[str, str]] = {
    "a million layers of lists": ("[" * 100_000, "too deeply nested"),
    "deep objects": ('{"a":' * 50_000, "too deeply nested"),
    "an unknown type": (json.dumps({"model_type": "x" * 500}), "model_type"),
    "markup": (json.dumps({**SMALL, "<img src=x onerror=alert(1)>": 1}), "does not know this key"),
}


def test_hostile_configs_get_an_error_beside_the_field_and_no_harm(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor)
    for name, (text, rule) in HOSTILE.items():
        give(page, text)
        error = page.locator("#config-error")
        expect(error, name).to_contain_text(rule)
        assert len(error.inner_text()) < 1300, name
        assert page.locator("img[src=x]").count() == 0
        give(page, "")
        expect(error, name).to_be_hidden()
    assert visitor.errors == []


def test_a_million_layers_are_counted_at_once(visit: Visitor) -> None:
    page = open_calculator(visit(locale="en-US"))  # whose Python goes on with them for a minute
    config: dict[str, Any] = {**SMALL, "n_layer": 1_000_000}
    give(page, json.dumps(config))
    assert parameters(page) == python_parameters(config=json.dumps(config))
    expect(page.locator("#config-error")).to_be_hidden()


def test_a_config_too_long_for_an_address_is_counted_and_said_to_stay_here(visit: Visitor) -> None:
    page = visit().open("calculator/?model=gpt2-l")
    unpackable = random.Random(0).randbytes(60_000).hex()
    give(page, json.dumps({**SMALL, "_name_or_path": unpackable}))
    expect(page.locator("#config-unshared")).to_be_visible()
    assert parameters(page) == python_parameters(config=json.dumps(SMALL))
    assert "#" not in page.url
    give(page, json.dumps(SMALL))
    expect(page.locator("#config-unshared")).to_be_hidden()
    page.wait_for_url("**#config=*")


def test_an_address_that_is_cut_or_unpacks_to_too_much_is_refused(visit: Visitor) -> None:
    visitor = visit()
    packed = zlib.compress(json.dumps({**SMALL, "_name_or_path": "x" * 3_000_000}).encode(), 9)
    fragment = base64.urlsafe_b64encode(packed[2:-4]).decode().rstrip("=")  # without zlib's frame
    assert len(fragment) < 10_000
    refused = {"zzzz": "was cut or changed", fragment: "at most 2,000,000 characters"}
    for config, words in refused.items():
        page = visitor.open(f"calculator/#config={config}")
        expect(page.locator("#config-error")).to_contain_text(words)
        assert page.input_value("#config") == ""
        assert visitor.errors == []


def test_a_name_or_an_address_of_a_known_shape_is_entered_and_another_is_to_be_fetched(
    visit: Visitor,
) -> None:
    page = open_calculator(visit())
    typed = page.locator("#model")
    for name in ("Qwen/Qwen2.5-7B-Instruct", "https://huggingface.co/Qwen/Qwen2.5-7B/tree/main"):
        choose_model(page, "gpt2-s")
        settled(page)
        typed.fill(name)
        typed.press("Enter")
        expect(typed).to_have_value("Qwen/Qwen2.5-7B")
        assert "model=Qwen%2FQwen2.5-7B" in page.url
    typed.fill("me/mine")
    typed.press("Enter")
    expect(page.locator("#model-error")).to_contain_text("me/mine")
    expect(page.locator("#config-hub")).to_have_value("me/mine")
    expect(page.get_by_role("button", name="Fetch its config.json")).to_be_visible()
