"""The ledger's records: storages, parts, phases and peaks. No PyTorch needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BLOCK_BYTES: Final = 512  # PyTorch's caching allocator hands out multiples of 512 bytes


def block_bytes(size: int) -> int:
    """Bytes that the caching allocator gives for a request of `size` bytes."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


class Part(StrEnum):
    """Purpose of a storage."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    INPUTS = "inputs"
    COPIES = "autocast_copies"
    ACTIVATIONS = "activations"
    TEMPORARIES = "temporaries"


class Phase(StrEnum):
    """The four phases of a step.

    `FORWARD` ends when the last module before the loss, the language-model head, returns the
    logits; `LOSS` ends when the gradient of those logits exists and backward enters the head's
    matrix product; `BACKWARD` ends when all gradients exist; `UPDATE` ends when they are freed.
    """

    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Storage:
    """One storage in a step: what made it, what it is for, and from when to when it lived.

    `size` is what was asked for, `bytes` what the allocator gives: a multiple of 512. `born` and
    `died` are places in the log, and `parts` what it was for from which place on.
    """

    size: int
    bytes: int
    operation: str
    module: str
    node: str
    shape: str
    parts: tuple[tuple[int, Part], ...]
    born: int
    died: int

    def lives(self, at: int) -> bool:
        """True if it exists after entry number `at` of the log."""
        return self.born <= at < self.died

    def part(self, at: int) -> Part:
        """Its purpose at that place."""
        return next(part for since, part in reversed(self.parts) if since <= at)


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that was alive in one phase, and the operation that reached it."""

    total: int
    exact: int
    parts: Mapping[Part, int]
    operation: str
    module: str
    index: int


@dataclass(frozen=True, slots=True)
class Event:
    """One operation: what was alive after it, its highest, and what it made."""

    index: int
    phase: Phase
    operation: str
    module: str
    node: str
    total: int
    change: int
    made: tuple[str, ...]
