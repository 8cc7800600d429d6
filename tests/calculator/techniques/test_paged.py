"""States in CUDA's managed memory; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.__main__ import main
from calculator.catalog import find_gpu, find_model
from calculator.estimate import estimate
from calculator.plan import Optimizer, Plan, Precision
from calculator.planner.advice import advise_in_steps
from calculator.planner.need import Verdict, describe_need, judged, need_of
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.states import paged_bytes, state_bytes
from calculator.tensors import ParameterTensor
from calculator.units import format_bytes

PLAN = Plan(sequence_length=64, paged_optimizer=True)
PLAIN = replace(PLAN, paged_optimizer=False, optimizer_bits=32)
# bitsandbytes' `get_state_buffer` pages no tensor of fewer than 1e5 elements
BELOW, AT = ParameterTensor("below", (99_999,)), ParameterTensor("at", (100_000,))


def of(**options: Any) -> Plan:
    return resolve(find_model("gpt2-s"), replace(PLAN, **options))


@pytest.mark.parametrize(("optimizer", "states"), [("adam", 2), ("lion", 1)])
def test_states_of_100_000_elements_are_paged_and_smaller_ones_are_not(
    optimizer: str, states: int
) -> None:
    plan = of(optimizer=optimizer)
    assert paged_bytes([BELOW, AT], plan) == states * 4 * 100_000
    # 399,996 bytes in whole blocks of 512
    assert state_bytes([BELOW, AT], plan) == states * 400_384


def test_scales_and_tables_of_8_bit_states_stay_on_the_gpu() -> None:
    plan = of(optimizer_bits=8)
    assert paged_bytes([AT], plan) == 2 * 100_000
    # 391 blocks of 256 elements have a scale of 4 bytes each; tables have 256 values of 4 bytes
    assert state_bytes([AT], plan) == 2 * (2048 + 1024)


def test_the_gpu_has_what_is_left_and_ram_has_nothing_for_certain() -> None:
    model = find_model("gpt2-s")
    paged, plain = (
        estimate(model, replace(plan, optimizer=Optimizer.LION)) for plan in (PLAN, PLAIN)
    )
    # 124,439,808 parameters; all but the norms and biases are in tensors of 100,000 or more
    small = 25 * 2 * 768 + 12 * (3 * 768 + 768 + 4 * 768 + 768)
    assert paged.paged == 4 * (124_439_808 - small)
    update, before = (each.phases[Phase.UPDATE] for each in (paged, plain))
    assert before.optimizer - update.optimizer == paged.paged
    assert replace(before, optimizer=0) == replace(update, optimizer=0)
    assert paged.ram.total == paged.to_ram == paged.to_gpu == plain.paged == 0


def test_states_of_16_bit_weights_are_in_32_bits_unless_it_is_said() -> None:
    assert of(precision=Precision.HALF).optimizer_bits == 32
    assert of(precision=Precision.HALF, optimizer_bits=8).optimizer_bits == 8


def test_adapters_are_paged_where_rank_times_width_is_large_enough() -> None:
    model = find_model("meta-llama/Llama-3.1-8B")
    plan = replace(PLAN, lora=16, lora_targets="q_proj")
    # 16 by 4,096 is below 100,000, 64 by 4,096 is not; 32 layers have two such matrices each
    assert estimate(model, plan).paged == 0
    assert estimate(model, replace(plan, lora=64)).paged == 32 * 2 * 64 * 4096 * 8


def test_the_verdict_counts_what_must_be_on_the_gpu_and_says_where_the_rest_is() -> None:
    model, gpu = find_model("gpt2-xl"), find_gpu("l4")
    report = estimate(model, replace(PLAN, batch_size=1).on(gpu))
    need = need_of(report)
    plain = need_of(judged(model, PLAIN.on(gpu)))
    assert need.verdict(gpu.memory) is Verdict.FITS
    assert plain.verdict(gpu.memory) is Verdict.DOES_NOT_FIT
    words = describe_need(need, gpu)
    assert "have no room beside that and are in RAM" in words
    roomy = describe_need(need, find_gpu("a100-80"))
    assert roomy.endswith("have room beside that on the GPU.")
    none = describe_need(replace(need, typical=gpu.memory), gpu)
    assert none.endswith("each step moves all of them to the GPU and back.")
    assert "paged" not in describe_need(need, find_gpu("gtx-1080-ti"))


def test_what_is_left_over_is_not_offered_twice(capsys: pytest.CaptureFixture[str]) -> None:
    size = format_bytes(estimate(find_model("gpt2-s"), PLAN).paged)
    words = ["gpt2-s", "--sequence-length", "64", "--paged-optimizer", "--gpu", "t4"]
    assert main(["fit", *words]) == 0
    assert f"of which paged states take up to {size}" in capsys.readouterr().out
    *_, advice = advise_in_steps(find_model("gpt2-s"), PLAN, find_gpu("t4"))
    assert advice.note.endswith(f"are left. Paged states take up to {size} of it.")


def test_json_has_the_bytes_and_both_ends_of_what_may_happen() -> None:
    report = estimate(find_model("gpt2-s"), PLAN)
    value = report.as_json()
    assert value["paged"] == {
        "bytes": report.paged,
        "peak_with_all": value["gpu"]["peak"] + report.paged,
        "most_to_ram": report.paged,
        "most_to_gpu": report.paged,
    }
