"""Presets: what tutorials set, by card and model, and what gives way to other choices."""

import pytest

from calculator.__main__ import main
from calculator.cards import CARDS
from calculator.catalog import find_model
from calculator.page.states import chosen, read_state
from calculator.plan import Plan
from calculator.presets import Preset, beside, plan_with
from calculator.resolution import resolve
from tests.calculator.plans import options_of

QWEN, EXPERTS = find_model("Qwen/Qwen3-4B"), find_model("Qwen/Qwen3-30B-A3B")
T4, ADA = CARDS["t4"], CARDS["rtx-4090"]


def resolved(card: str = "rtx-4090", model: str = "Qwen/Qwen3-4B", **given: object) -> Plan:
    architecture = find_model(model)
    return resolve(architecture, plan_with(architecture, CARDS[card], given))


def test_qlora_is_what_a_tutorial_types() -> None:
    # Unsloth: r=16, all linear layers, adamw_8bit, checkpointing; peft: nf4, double quantization
    typed = "precision=half lora=16 lora_targets=all-linear quantization=nf4-double "
    typed += "optimizer=adamw_8bit checkpointing=full"
    assert plan_with(QWEN, ADA, {"preset": "qlora"}) == Plan.parse(options_of(typed)).on(ADA)


@pytest.mark.parametrize("preset", Preset)
def test_a_card_without_bf16_computes_in_fp16(preset: Preset) -> None:
    formats = [resolved(card, preset=preset).format for card in ("t4", "rtx-4090")]
    assert formats == ["fp16", "bf16"]


def test_adapters_leave_out_experts_that_peft_fuses() -> None:
    # the linear layers of transformers' Qwen3MoeAttention
    targets = plan_with(EXPERTS, ADA, {"preset": "lora"}).lora_targets
    assert set(targets.split(",")) == {"q_proj", "k_proj", "v_proj", "o_proj"}


@pytest.mark.parametrize(
    "given",
    [
        *("preset=full optimizer=adafactor", "preset=qlora lora=0", "preset=full precision=half"),
        "preset=full gpus=8 data_parallel=fsdp",
    ],
)
def test_another_choice_takes_along_what_only_serves_the_presets(given: str) -> None:
    # refused with the 8 bits, 4 bits or the scaler
    resolve(QWEN, plan_with(QWEN, T4, options_of(given)))


def test_llama_3_1_8b_fits_a_free_t4_by_qlora_alone() -> None:
    # Unsloth's notebook for Llama 3.1 8B runs on Colab's T4; 8 billion 16-bit weights do not fit it
    command = ["estimate", "meta-llama/Llama-3.1-8B", "--gpu", "t4", "--preset"]
    assert [main([*command, preset]) for preset in Preset] == [1, 1, 0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, {}),
        ({"lora": 8, "batch_size": 4}, {"lora": 8, "batch_size": 4}),
        ({"quantization": "none"}, {"quantization": "none"}),
        ({"optimizer": "lion"}, {"optimizer": "lion"}),
    ],
)
def test_a_plan_is_told_by_what_differs_from_its_preset(
    given: dict[str, object], told: dict[str, object]
) -> None:
    plan = plan_with(QWEN, ADA, {"preset": "qlora", **given})
    assert beside(Preset.QLORA, QWEN, plan, ADA) == told
    # left out, the adapters' targets are the model's own: no option beside the preset says so
    plan = plan_with(QWEN, ADA, {"lora": 16, "precision": "half"})
    assert beside(Preset.LORA, QWEN, plan, ADA) is None


@pytest.mark.parametrize("preset", Preset)
@pytest.mark.parametrize("card", ["t4", "rtx-4090"])
def test_an_address_with_a_preset_leads_back_to_its_plan(preset: Preset, card: str) -> None:
    params = {"model": "Qwen/Qwen3-4B", "gpu": card, "preset": preset.value, "batch_size": "2"}
    architecture, plan, _ = read_state(params)
    found = chosen(architecture, plan, params)
    assert (found["preset"], found["batch_size"]) == (preset.value, "2")
    assert read_state(found)[1] == plan


def test_an_address_names_the_preset_of_what_its_plan_trains() -> None:
    params = {"model": "Qwen/Qwen3-4B", "preset": "qlora", "quantization": "none"}
    architecture, plan, _ = read_state(params)
    assert chosen(architecture, plan, params) == {"model": "Qwen/Qwen3-4B", "preset": "lora"}
