"""Inputs of checkpointed layers in RAM; measured rows hold whole steps."""

from dataclasses import replace

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import ActivationOffload, Plan
from calculator.report import Phase

PLAN = Plan(batch_size=2, sequence_length=96, precision="half", checkpointing="full")
LLAMA = "meta-llama/Llama-3.1-8B"
# Llama 3.1's config.json: 32 layers of width 4,096
INPUT = 2 * 2 * 96 * 4096
LAYERS = 32


def test_each_layers_input_leaves_the_gpu_for_ram_which_rounds_up_what_is_pinned() -> None:
    here, pageable, pinned = (
        estimate(find_model(LLAMA), replace(PLAN, activation_offload=each))
        for each in (ActivationOffload.NONE, ActivationOffload.PAGEABLE, ActivationOffload.PINNED)
    )
    assert pageable.ram.activations == pageable.ram.total == LAYERS * INPUT
    kept = [report.phases[Phase.LOSS].activations for report in (here, pageable)]
    assert kept[0] - kept[1] == LAYERS * INPUT
    assert (here.ram.total, here.to_ram, here.to_gpu) == (0, 0, 0)
    # aten/src/ATen/core/CachingHostAllocator.h: PowerOf2Ceil
    assert INPUT == 3 * 2**19
    assert pinned.ram.activations == LAYERS * 2**21
    assert pinned.phases == pageable.phases
    for report in (pageable, pinned):
        assert report.to_ram == report.to_gpu == LAYERS * INPUT
