"""Context parallelism: several GPUs divide each sequence among them.

Counted is PyTorch's `context_parallel`, with its default way to divide: a sequence is cut into 2 N
chunks, of which each of N GPUs has one from the front and one from the end, so that all compute as
much of a causal mask. Token ids, labels, places and a mask of ones are divided before the step, in
the bytes of the whole. Only attention needs other GPUs' tokens: the ring's turns and merges are in
`calculator.layers.ring`. Keys and values are gathered at once (`allgather`), or passed on from one
GPU to the next (`alltoall`), in both passes; gradients of keys and values are passed on in 32 bits.

All GPUs have the same weights, and other tokens: gradients are reduced, and FSDP's shards are cut,
over all of them, whether they read parts of one sequence or other sequences.

Source: context_parallel, torch (distributed/tensor/experimental/_context_parallel/_attention.py)
"""

from collections.abc import Iterator
from typing import Final

from calculator.layers.ring import place_of
from calculator.plan import Attention, ContextRotation, Plan
from calculator.techniques.effect import Answer, Effect

KERNELS = (Attention.SDPA, Attention.FLASH)
MOST_TURNS = 64


def chunks_of(plan: Plan) -> int:
    """Chunks of each sequence, all of the same length."""
    return 2 * plan.context_parallel if plan.context_parallel > 1 else 1


def _notes(answer: Answer) -> Iterator[str]:
    """Sentences on what each GPU has of a sequence."""
    plan = answer.plan
    parts, length = plan.context_parallel, plan.sequence_length
    groups = plan.replicas // parts
    shared = "All GPUs" if groups == 1 else f"In each of {groups:,} groups, {parts:,} GPUs"
    place = place_of(parts)
    yield (
        f"{shared} read parts of the same sequences: each has {length // parts:,} of "
        f"{length:,} tokens, in two chunks, one from the front and one from the end. Attention "
        f"takes {parts:,} turns. Figures are those of GPU {place} of a group, counted from 0, "
        "which holds the most. The inputs keep the bytes of whole sequences."
    )


EFFECT: Final = Effect(
    used=lambda plan: plan.context_parallel > 1,
    mode=lambda plan: {
        "context": plan.context_parallel,
        "rotates": plan.context_rotation is ContextRotation.ALL_TO_ALL,
    },
    notes=_notes,
)
