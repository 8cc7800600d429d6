"""The form: sliders, the address, errors beside their field, reset, keyboard."""

import re
from math import log

import pytest
from playwright.sync_api import Page, expect

from calculator.catalog import MODELS, find_gpu, find_model
from calculator.plan import Plan
from calculator.planner.largest import largest_batch
from templates.pages.calculator.context import OPENING, SLIDERS, names_in_other_libraries
from tests.browser.visits import (
    Visitor,
    advised,
    choose_model,
    open_address,
    open_calculator,
    settled,
)
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

QUICK = "model=bert-base"  # whose advice is soon found


def peak(page: Page) -> str:
    return page.locator(".figures__total [data-text='report.gpu.peak']").text_content() or ""


def command(page: Page) -> str:
    return page.locator("#calculator-command").text_content() or ""


STOPS = SLIDERS["batch_size"]
FIRST_OF_EACH = {MODELS[name].family: name for name in reversed(MODELS)}


def python_peak(**params: str) -> str:
    figures = ask("answer", **params)["value"]["figures"]
    return str(figures["report.gpu.peak"])


def test_a_slider_its_number_the_figures_and_the_address_move_together(visit: Visitor) -> None:
    page = open_calculator(visit(), QUICK)
    slider, number = page.locator("input[type=range][name=batch_size]"), page.locator("#batch_size")
    slider.fill(str(STOPS.index(8)))
    settled(page)
    expect(number).to_have_value("8")
    assert peak(page) == python_peak(model="bert-base", batch_size="8")
    assert page.url.endswith(f"?{QUICK}&batch_size=8")
    number.fill("12")
    settled(page)
    expect(slider).to_have_value(str(STOPS.index(12)))
    expect(slider).to_have_attribute("aria-valuetext", "12")
    assert peak(page) == python_peak(model="bert-base", batch_size="12")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    settled(page)
    stop = str(STOPS[STOPS.index(12) + 3])
    assert peak(page) == python_peak(model="bert-base", batch_size=stop)


@pytest.mark.one_python(advice=True)
def test_a_slider_shows_where_it_stops_fitting(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=gpt2-s")
    advised(page)
    most = largest_batch(find_model("gpt2-s"), Plan().on(find_gpu("t4")), find_gpu("t4").memory)
    after = next(place for place, stop in enumerate(STOPS) if stop >= most)
    share = log(most / STOPS[after - 1]) / log(STOPS[after] / STOPS[after - 1])
    frame = page.locator(".slider:has([name=batch_size])")
    expect(frame).to_have_attribute("data-largest", "")
    shown = float(frame.evaluate("(one) => one.style.getPropertyValue('--largest')"))
    assert shown == pytest.approx((after - 1 + share) / (len(STOPS) - 1))
    length = page.locator(".slider:has([name=sequence_length])")  # ends with the positions
    expect(length).not_to_have_attribute("data-largest", "")
    expect(length).to_have_attribute("data-longest", "")
    expect(page.locator("#sequence_length-help")).to_contain_text("The model's longest: 1,024.")


def test_every_control_is_reached_with_the_tab_key(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=bert-base&preset=full")
    wanted = page.evaluate(
        # of the kinds of training the one that is chosen
        "() => [...document.querySelectorAll('#calculator-form :is("
        "input:not([type=radio]:not(:checked)), select, button)')]"
        ".filter((e) => e.offsetParent && !e.disabled).length"
    )
    page.locator("[name=preset]:checked").focus()
    reached = 0
    while page.evaluate("() => Boolean(document.activeElement.closest('#calculator-form'))"):
        reached += page.evaluate("() => document.activeElement.matches('input, select, button')")
        page.keyboard.press("Tab")
    assert reached == wanted


def test_an_edited_state_survives_a_reload(visit: Visitor) -> None:
    page = open_calculator(visit())
    choose_model(page, "t5-large")
    page.select_option("#checkpointing", "full")
    page.locator("#target_length").fill("128")
    settled(page)
    before = page.url, peak(page), command(page)
    page.reload()
    settled(page)
    assert (page.url, peak(page), command(page)) == before
    expect(page.locator("#model")).to_have_value("t5-large")
    expect(page.locator("#checkpointing")).to_have_value("full")
    expect(page.locator("#target_length")).to_have_value("128")


def test_an_error_stands_beside_its_field_once_and_goes_when_it_is_fixed(visit: Visitor) -> None:
    page = open_calculator(visit())
    page.locator("#batch_size").fill("-3")
    settled(page)
    error = page.locator("#batch_size-error")
    expect(error).to_have_text("Micro-batch -3: must be a whole number from 1 to 65,536.")
    assert page.inner_text("main").count("must be a whole number") == 1
    expect(page.locator("#calculator-refused")).to_contain_text("correct “Micro-batch”")
    # transformers' per_device_train_batch_size is named below the field
    assert not re.search(r"\bbatch_size", page.inner_text("main"))
    expect(page.locator("#batch_size")).to_have_attribute("aria-invalid", "true")
    page.locator("#batch_size").fill("3")
    settled(page)
    expect(error).to_be_hidden()
    expect(page.locator("#calculator-refused")).to_be_hidden()
    assert page.locator("[aria-invalid]").count() == 0
    assert peak(page) == python_peak(batch_size="3")


def test_what_is_not_ours_in_the_address_is_ignored_and_no_preset_is_assumed(
    visit: Visitor,
) -> None:
    others = "fbclid=x&utm_source=a&utm_medium=b&colour=red&=&%FF"
    page = open_calculator(visit(), f"{others}&batch_size=2")
    expect(page.locator("#calculator-refused")).to_be_hidden()
    expect(page.locator("#calculator-answer[data-stale]")).to_have_count(0)
    expect(page.locator("[name=preset]:checked")).to_have_count(0)
    assert peak(page) == python_peak(batch_size="2")
    assert page.url.endswith("?model=gpt2-l&batch_size=2")


def test_an_error_without_a_field_in_sight_stands_above_the_figures(visit: Visitor) -> None:
    page = open_calculator(visit(), "target_length=5")
    refused = page.locator("#calculator-refused")
    expect(refused).to_contain_text("Target length 5: gpt2-l has no decoder of its own")
    expect(page.locator("#calculator-verdict")).to_have_text("No figures for these choices yet.")
    refused.get_by_role("button", name="Omit Target length").click()
    settled(page)
    expect(refused).to_be_hidden()
    assert page.url.endswith("?model=gpt2-l")


@pytest.mark.one_python(advice=True)
def test_a_visit_that_begins_with_refused_choices_waits_for_nothing(visit: Visitor) -> None:
    page = visit().open("calculator/?gpus=0")
    notes = [
        page.locator(place)
        for place in ("#advice-note", ".curve__note", "#calculator-frontier [role=status]")
    ]
    for note in notes:
        expect(note).to_have_text("Nothing can be counted for these choices.")
    page.locator("#gpus").fill("1")
    expect(page.locator("#advice-note")).to_be_hidden()
    expect(page.locator("#calculator-verdict")).to_contain_text("fit")


def test_what_the_other_choices_forbid_is_gray_with_its_reason_and_in_the_tab_order(
    visit: Visitor,
) -> None:
    page = open_calculator(visit(), "model=gpt2-s&gpus=4&data_parallel=fsdp")
    for folded in page.locator("#calculator-form details").all():
        folded.evaluate("(one) => { one.open = true; }")
    assert page.locator("#optimizer_bits option").evaluate_all(
        "(all) => all.filter((one) => one.disabled).map((one) => one.value)"
    ) == ["8"]
    expect(page.locator("#optimizer_bits-help")).to_contain_text("does not update shards")
    box = page.get_by_role("checkbox", name=Plan.options()["paged_optimizer"].label, disabled=True)
    box.focus()
    expect(box).to_be_focused()
    page.keyboard.press("Space")
    expect(box).not_to_be_checked()
    page.select_option("#data_parallel", "ddp")
    settled(page)
    expect(page.locator("#optimizer_bits option:disabled")).to_have_count(0)
    expect(page.locator("#optimizer_bits-help")).not_to_contain_text("does not update shards")


def test_an_error_in_the_address_stands_beside_its_field_even_a_folded_one(visit: Visitor) -> None:
    page = open_calculator(visit(), "dropout=2")
    expect(page.locator("#dropout-error")).to_be_visible()
    page = open_calculator(visit(), "model=gpt2-larg")
    expect(page.locator("#model-error")).to_contain_text("gpt2-l")


def test_folded_options_name_what_was_chosen_among_them(visit: Visitor) -> None:
    page = open_calculator(visit(), "optimizer_bits=8&optimizer=lion&checkpointing=full")
    chosen = [text for text in page.locator("[data-chosen]").all_text_contents() if text]
    groups = ["Optimizer: lion; Optimizer bits: 8", "Gradient checkpointing: full"]
    assert chosen == ["; ".join(groups), *groups]


def test_reset_brings_the_opening_state_back(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=bert-large&precision=fp32&gpu_memory=7")
    page.get_by_role("button", name="Reset").click()
    settled(page)
    assert peak(page) == python_peak(**OPENING)
    assert "?" not in page.url
    expect(page.locator("#precision")).to_have_value("half")
    expect(page.locator("#gpu_memory")).to_be_hidden()
    choose_model(page, "dalle-together")  # has no adapters
    settled(page)
    expect(page.get_by_role("radio", name="Full")).to_be_checked()
    expect(page.locator("#calculator-refused")).to_be_hidden()


def test_a_preset_sets_its_options_takes_back_anothers_and_goes_with_another_family(
    visit: Visitor,
) -> None:
    page = open_calculator(visit(), "model=gpt2-s&preset=qlora")
    presets = page.get_by_role("group", name="Kind of training")
    expect(presets.get_by_role("radio", name="QLoRA")).to_be_checked()
    page.locator("#lora").fill("8")
    settled(page)
    assert page.url.endswith("?model=gpt2-s&preset=qlora&lora=8")
    presets.get_by_role("radio", name="Full").check(force=True)
    settled(page)
    assert page.url.endswith("?model=gpt2-s&preset=full")
    expect(page.locator("#lora")).to_have_value("0")
    assert command(page).endswith("estimate gpt2-s --preset full --gpu t4")
    page.select_option("#gpu", "a100-80")
    page.get_by_role("button", name="DALL-E").click()
    settled(page)
    assert page.url.endswith("?model=dalle-together&gpu=a100-80")


def test_a_gpu_that_is_not_on_the_list_is_given_by_its_memory(visit: Visitor) -> None:
    page = open_calculator(visit())
    page.select_option("#gpu", label="Another GPU: enter its memory in GiB")
    page.locator("#gpu_memory").fill("7.5")
    settled(page)
    value = ask("answer", gpu_memory="7.5")["value"]
    expect(page.locator("#calculator-verdict")).to_have_text(value["verdict"]["text"])


def test_choosing_another_model_never_leaves_an_error(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=gpt2-l&gpu=l4")  # a card with flash attention
    for model in FIRST_OF_EACH.values():
        choose_model(page, "gpt2-l")
        page.locator("#sequence_length").fill("777")
        page.locator("#sharing_groups").fill("5")
        page.select_option("#attention", "flash", force=True)
        settled(page)
        choose_model(page, model)
        settled(page)
        assert page.locator(".field__error:visible").count() == 0, model
        assert page.input_value("#model") == model


def test_the_command_can_be_copied(visit: Visitor) -> None:
    page = open_calculator(visit())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#calculator-copy")).to_have_text("Copied")
    expect(page.locator("#calculator-copy + [role=status]")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == command(page)


def test_instant_navigation_keeps_one_python_for_all_pages(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor)
    visitor.requests.clear()
    for _ in range(2):
        page.locator(".site-footer").get_by_role("link", name="Home").click()
        page.wait_for_selector(".hero")
        page.get_by_role("link", name="full calculator").click()
        page.wait_for_selector("#calculator-form[data-mounted]")
        settled(page)
    page.locator("#batch_size").fill("2")
    settled(page)
    assert peak(page) == python_peak(**OPENING, batch_size="2")
    assert not [address for address in visitor.requests if address.endswith("worker.js")]
    assert visitor.errors == []


# Instant navigation takes the page away; a timer that the edit set ends before this one.
EDIT_AND_LEAVE = """async () => {
  document.querySelector("#calculator-form").reset();
  document.querySelector("article").replaceChildren();
  await new Promise((ended) => setTimeout(ended, 100));
}"""


def test_a_page_that_is_left_while_python_computes_fails_nowhere(visit: Visitor) -> None:
    visitor = visit()
    open_calculator(visitor).evaluate(EDIT_AND_LEAVE)
    assert visitor.errors == []


def test_names_in_other_libraries_open_with_the_keyboard_and_close_with_escape(
    visit: Visitor,
) -> None:
    page = open_calculator(visit())
    label = "Gradient accumulation in other libraries"
    names = page.get_by_role("group", name=label)
    expect(names).to_be_hidden()
    page.get_by_role("button", name=label).focus()
    page.keyboard.press("Enter")
    elsewhere = names_in_other_libraries("accumulation")
    expect(names.locator("dt")).to_have_text([*elsewhere])
    expect(names.locator("dd")).to_have_text([*elsewhere.values()])
    page.keyboard.press("Escape")
    expect(names).to_be_hidden()


def test_a_data_set_adds_hours_and_price_and_stays_with_another_model(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor, "model=gpt2-l")
    place = page.locator("[data-text='training']")
    expect(place).to_be_hidden()
    page.locator("#tokens").fill("1e7")
    page.locator("#price_per_hour").fill("0.5")
    state = {"gpu": "t4", "tokens": "1e7", "price_per_hour": "0.5"}
    for model in ("gpt2-l", "bert-large"):
        expected = ask("answer", model=model, **state)["value"]["training"]
        assert "Price: $" in expected
        expect(place).to_have_text(expected)
        page.locator(".family[data-model='bert-large']").click()
    page.locator("#rows").fill("3")
    expect(page.locator("#rows-error")).to_contain_text("must not stand beside tokens")
    open_address(visitor)
    expect(page.locator("#rows")).to_have_value("")
    expect(page.locator("#tokens")).to_have_value("1e7")
