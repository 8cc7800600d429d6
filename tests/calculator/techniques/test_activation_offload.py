"""Inputs of checkpointed layers in RAM; measured rows hold what leaves the GPU."""

from tests.calculator.plans import case_of

LLAMA = "meta-llama/Llama-3.1-8B"
OPTIONS = "batch_size=2 sequence_length=96 precision=half checkpointing=full"
# Llama 3.1's config.json: 32 layers of width 4,096
INPUT = 2 * 2 * 96 * 4096
LAYERS = 32


def test_each_layers_input_leaves_the_gpu_for_ram_which_rounds_up_what_is_pinned() -> None:
    pageable, pinned = (
        case_of(LLAMA, OPTIONS, activation_offload=each).report for each in ("pageable", "pinned")
    )
    assert pageable.ram.activations == pageable.ram.total == LAYERS * INPUT
    # aten/src/ATen/core/CachingHostAllocator.h: PowerOf2Ceil
    assert INPUT == 3 * 2**19
    assert pinned.ram.activations == LAYERS * 2**21
    assert pinned.phases == pageable.phases
