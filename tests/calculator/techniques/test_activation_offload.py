"""Inputs of checkpointed layers in RAM; measured rows hold whole steps."""

from dataclasses import replace

from calculator.catalog import find_model
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
