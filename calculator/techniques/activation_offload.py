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

from collections.abc import Iterable, Sequence

from calculator.allocator import round_pinned
from calculator.architecture import Architecture
from calculator.autograd.ledger import MOVED
from calculator.errors import InputError
from calculator.models.registry import type_of
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.prepare import Prepared
from calculator.peaks.trace import record
from calculator.plan import ActivationOffload, Attention, Checkpointing, Plan


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


def check_activation_offload(plan: Plan, architecture: Architecture) -> None:
    """Refuse what is not counted.

    Raises:
        InputError: naming the option and the rule; `plan` says whether layers are reversible.
    """
    rule = ""
    if plan.checkpointing is not Checkpointing.FULL:
        rule = "is counted with full checkpointing only"
    elif plan.reversible:
        rule = "has nothing to move from reversible layers, which keep no inputs"
    elif type_of(architecture).layers_get_mask and plan.attention is Attention.EAGER:
        rule = f"of {architecture.family} would move eager attention's mask too, not counted"
    if rule:
        raise InputError("activation_offload", plan.activation_offload, f"{rule}: must be none")
