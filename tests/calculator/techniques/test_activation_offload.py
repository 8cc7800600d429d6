"""Inputs of checkpointed layers in RAM; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.estimate import estimate
from calculator.plan import ActivationOffload, Checkpointing, Plan, Precision
from calculator.report import Phase

PLAN = Plan(
    batch_size=2,
    sequence_length=96,
    precision=Precision.HALF,
    checkpointing=Checkpointing.FULL,
    activation_offload=ActivationOffload.PAGEABLE,
)
HERE = replace(PLAN, activation_offload=ActivationOffload.NONE)
LLAMA = "meta-llama/Llama-3.1-8B"
# Llama 3.1's config.json: 32 layers of width 4,096
INPUT = 2 * 2 * 96 * 4096
LAYERS = 32


def test_each_layers_input_leaves_the_gpu_and_counts_in_ram() -> None:
    model = find_model(LLAMA)
    here, there = estimate(model, HERE), estimate(model, PLAN)
    assert there.ram.activations == there.ram.total == LAYERS * INPUT
    assert (there.to_ram, there.to_gpu) == (LAYERS * INPUT, LAYERS * INPUT)
    kept = [report.phases[Phase.LOSS].activations for report in (here, there)]
    assert kept[0] - kept[1] == LAYERS * INPUT
    assert (here.ram.total, here.to_ram, here.to_gpu) == (0, 0, 0)


def test_every_micro_batch_moves_its_inputs() -> None:
    model = find_model(LLAMA)
    once, thrice = (estimate(model, replace(PLAN, accumulation=n)) for n in (1, 3))
    assert thrice.to_ram == thrice.to_gpu == 3 * once.to_ram
    assert thrice.ram == once.ram


def test_pinned_ram_is_rounded_up_to_powers_of_two_and_the_gpu_needs_the_same() -> None:
    # aten/src/ATen/core/CachingHostAllocator.h: PowerOf2Ceil
    pageable, pinned = (
        estimate(find_model(LLAMA), replace(PLAN, activation_offload=each))
        for each in (ActivationOffload.PAGEABLE, ActivationOffload.PINNED)
    )
    assert INPUT == 3 * 2**19
    assert pinned.ram.activations == LAYERS * 2**21
    assert pinned.phases == pageable.phases
    assert (pinned.to_ram, pinned.to_gpu) == (pageable.to_ram, pageable.to_gpu)


@pytest.mark.parametrize("layers", [1, 2, 4, 5, 30])
@pytest.mark.parametrize("groups", [None, 2])
def test_left_out_layers_move_their_inputs_too(layers: int, groups: int | None) -> None:
    model = replace(find_model("gpt2-s"), layers=layers)
    plan = replace(PLAN, sharing_groups=min(groups or layers, layers))
    report = estimate(model, plan)
    assert report.to_ram == layers * 2 * 2 * 96 * 768
    assert curve(model, plan).peak.memory.total == report.gpu.total
