"""Inputs of checkpointed layers in RAM instead of GPU memory.

Counted is PyTorch's `save_on_cpu` around each layer, as `offload_wrapper` puts it there, with full
checkpointing inside: of what a layer saves only its input is left, which goes to RAM in the forward
pass. The backward pass copies it back when the layer is computed again. One stream is counted; a
library that copies ahead of time, as torchtune and TRL do, holds some more inputs on the GPU.

PyTorch rounds each tensor in pinned RAM up to a power of two, and keeps pinned RAM until the
process ends.

Source: save_on_cpu, torch (autograd/graph.py, distributed/algorithms/_checkpoint,
aten/src/ATen/core/CachingHostAllocator.h)
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from calculator.allocator import round_pinned
from calculator.autograd.ledger import MOVED
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.step import Prepared
from calculator.peaks.trace import record
from calculator.plan import ActivationOffload, Plan
from calculator.techniques.effect import Answer, Effect


def moved_inputs(prepared: Prepared, plan: Plan) -> Sequence[int]:
    """Bytes of each tensor that a micro-batch moves to RAM, and back."""
    if plan.activation_offload is ActivationOffload.NONE:
        return ()
    chunks = record(prepared.step).chunks
    return noted_bytes(chunks, MOVED, prepared.numbers, prepared.left_out)


def ram_of(sizes: Iterable[int], plan: Plan) -> int:
    """Bytes of RAM for moved tensors of these sizes.

    >>> pinned = Plan(activation_offload=ActivationOffload.PINNED)
    >>> ram_of([1536, 2048], pinned)
    4096

    Source: torch (aten/src/ATen/core/CachingHostAllocator.h)
    """
    if plan.activation_offload is ActivationOffload.PINNED:
        return sum(map(round_pinned, sizes))
    return sum(sizes)


def _notes(answer: Answer) -> Iterator[str]:
    yield (
        "Each layer's input is copied to RAM in the forward pass, and back before the layer "
        "is recomputed; we count no prefetching."
    )
    if answer.plan.activation_offload is ActivationOffload.PINNED:
        yield "PyTorch rounds each tensor in pinned RAM up to a power of two."


EFFECT: Final = Effect(
    used=lambda plan: plan.activation_offload is not ActivationOffload.NONE,
    mode=lambda _: {"moves_inputs": True},
    notes=_notes,
)
