"""Several GPUs that train together: DistributedDataParallel, each with a copy of the model.

DDP copies each gradient into one of its buckets, flat tensors that live from step to step, and
reduces a bucket over all GPUs as soon as it is full. After the first step it fills them in the
order in which gradients arrive: the first until it has 1 MiB, the others until they have 25 MiB.
With `gradient_as_bucket_view` a gradient is a view of its bucket, and its own bytes go at once.

Source: ddp, torch (distributed/c10d/reducer.cpp, nn/parallel/distributed.py)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

FIRST_BUCKET: Final = 2**20
BUCKET: Final = 25 * 2**20


BROADCAST: Final = "broadcast"
SEND: Final = "send"


class Group(Enum):
    """GPUs that exchange something: what they have in common."""

    LAYERS = "shares of the same layers"
    CONTEXT = "parts of the same sequences"
    REPLICAS = "copies or shards of the same weights"
    STAGES = "stages of one pipeline"


@dataclass(frozen=True, slots=True)
class Collective:
    """An operation of all GPUs of a group in one step: bytes of the whole tensor at each call."""

    name: str
    sizes: tuple[int, ...]
    group: Group = Group.REPLICAS

    @property
    def total(self) -> int:
        """Bytes of all calls."""
        return sum(self.sizes)

    def as_json(self) -> dict[str, Any]:
        """Its name, how often it runs in a step, and the bytes of all calls."""
        return {"name": self.name, "calls": len(self.sizes), "bytes": self.total}


def buckets(gradients: Iterable[int]) -> tuple[int, ...]:
    r"""Bytes of DDP's buckets for gradients of one format, by their bytes in order of arrival.

    $$b_k = \sum_{i = i_k}^{i_{k+1} - 1} g_i$$

    with g_i the bytes of a gradient; a bucket is full with the gradient that brings it to 1 MiB
    (the first bucket) or 25 MiB (any other).

    >>> buckets([2**20, 20 * 2**20, 10 * 2**20, 1])
    (1048576, 31457280, 1)

    Source: torch (distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size)
    """
    full: list[int] = []
    filled = 0
    for gradient in gradients:
        filled += gradient
        if filled >= (BUCKET if full else FIRST_BUCKET):
            full.append(filled)
            filled = 0
    return (*full, filled) if filled else tuple(full)
