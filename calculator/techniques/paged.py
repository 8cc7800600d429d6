"""Optimizer states in pages that CUDA moves between GPU and RAM: bitsandbytes' paged optimizers.

A state of at least 100,000 elements is in CUDA's managed memory (`cudaMallocManaged`), outside
PyTorch's allocator and its figures. A kernel on the GPU fills it first, so that it is on the GPU
while there is room, and CUDA moves pages of it to RAM when somebody else needs that room. The
update asks for the states of one tensor after another before it reads them. Smaller states, and the
scales and tables of 8-bit states, are ordinary tensors on the GPU.

PyTorch's allocator keeps what it once reserved for the peak: states without room beside it have
none in the update either. The update then passes through all of them in turn, and each step moves
at least those without room to RAM and back, and at most all.

Source: qlora, bitsandbytes (`get_state_buffer`, `prefetch_state`), paged
"""

from collections.abc import Iterator
from typing import Final

from calculator.plan import Plan
from calculator.techniques.effect import Answer, Effect
from calculator.units import format_bytes

SMALLEST_PAGED: Final = 100_000  # elements


def is_paged(elements: int, plan: Plan) -> bool:
    """True if the states of a tensor of so many elements are in managed memory.

    >>> [is_paged(elements, Plan(paged_optimizer=True)) for elements in (99_999, 100_000)]
    [False, True]

    Source: bitsandbytes (`get_state_buffer`)
    """
    return plan.paged_optimizer and elements >= SMALLEST_PAGED


def _notes(answer: Answer) -> Iterator[str]:
    """A sentence on what is not in the figures of the GPU, and one on Trainer's own way."""
    plan = answer.plan
    note = (
        f"States of at least {SMALLEST_PAGED:,} elements are in CUDA's managed memory, which "
        "PyTorch's figures leave out: on the GPU while there is room, else in RAM. The peak counts "
        "what must be on the GPU."
    )
    if plan.optimizer_bits == 8 and (not plan.lora or plan.lora_modules):
        note += " transformers' own optim argument keeps 32-bit states for trained embeddings."
    yield note


def describe_pages(paged: int, room: int) -> str:
    """The place of paged states, and what a step moves, where that many bytes are free for them.

    >>> describe_pages(3 * 2**30, 4 * 2**30)
    'Its paged states, 3.00 GiB, have room beside that on the GPU.'
    >>> describe_pages(3 * 2**30, 2**30)
    'Of its paged states, 3.00 GiB, 2.00 GiB have no room beside that and are in RAM: each step \
moves between 2.00 and 3.00 GiB there, and as much back.'
    """
    size = format_bytes(paged)
    if paged <= room:
        return f"Its paged states, {size}, have room beside that on the GPU."
    out = min(paged, paged - room)
    evicted = format_bytes(out)
    if out == paged:
        return (
            f"Its paged states, {size}, have no room beside that and are in RAM: each step moves "
            "all of them to the GPU and back."
        )
    number, unit = evicted.split(" ")
    least = number if size.endswith(f" {unit}") else evicted
    return (
        f"Of its paged states, {size}, {evicted} have no room beside that and are in RAM: each "
        f"step moves between {least} and {size} there, and as much back."
    )


EFFECT: Final = Effect(used=lambda plan: plan.paged_optimizer, notes=_notes)
