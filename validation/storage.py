"""What the ledger writes down: storages, parts, moments and peaks. No PyTorch needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

BLOCK_BYTES: Final = 512  # PyTorch's caching allocator hands out multiples of 512 bytes


def block_bytes(size: int) -> int:
    """Bytes that the caching allocator gives for a request of `size` bytes."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


class Part(StrEnum):
    """What a storage is for."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    INPUTS = "inputs"
    COPIES = "autocast_copies"
    ACTIVATIONS = "activations"
    TEMPORARIES = "temporaries"


class Moment(StrEnum):
    """The four moments of a step.

    `FORWARD` ends when the last module before the loss, the language-model head, returns the
    logits; `LOSS` ends when the gradient of those logits exists and backward enters the head's
    matrix product; `BACKWARD` ends when all gradients exist; `UPDATE` ends when they are freed.
    """

    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"


@dataclass(slots=True)
class Storage:
    """One live storage and the operation and module that made it.

    `size` is what was asked for, `bytes` what the allocator gives: on the watched device a multiple
    of 512. `born` is the number of the operation in the step.
    """

    size: int
    bytes: int
    device: str
    operation: str
    module: str
    shape: tuple[int, ...]
    dtype: str
    part: Part
    born: int
    node: str = ""
    reference: Any = None


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that was alive in one moment, and the operation that reached it."""

    total: int
    exact: int
    parts: Mapping[Part, int]
    operation: str
    module: str
    index: int


@dataclass(frozen=True, slots=True)
class Event:
    """One operation: what was alive after it, and by how much that changed since the last."""

    index: int
    moment: Moment
    operation: str
    module: str
    node: str
    total: int
    change: int
    made: tuple[tuple[tuple[int, ...], str, int], ...]
