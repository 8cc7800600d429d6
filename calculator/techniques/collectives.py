"""Exchanges of a step among GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from calculator.autograd.ledger import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    CONTEXT_ALL_GATHER,
    CONTEXT_ALL_TO_ALL,
    REDUCE_SCATTER,
    UNIT_ALL_GATHER,
    UNIT_REDUCE_SCATTER,
)

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


# what a step records of collectives: by which name, and among which GPUs
RECORDED: Final = {
    ALL_REDUCE: (ALL_REDUCE, Group.LAYERS),
    ALL_GATHER: (ALL_GATHER, Group.LAYERS),
    UNIT_ALL_GATHER: (ALL_GATHER, Group.REPLICAS),
    REDUCE_SCATTER: (REDUCE_SCATTER, Group.LAYERS),
    UNIT_REDUCE_SCATTER: (REDUCE_SCATTER, Group.REPLICAS),
    ALL_TO_ALL: (ALL_TO_ALL, Group.LAYERS),
    CONTEXT_ALL_GATHER: (CONTEXT_ALL_GATHER, Group.CONTEXT),
    CONTEXT_ALL_TO_ALL: (CONTEXT_ALL_TO_ALL, Group.CONTEXT),
}


def by_name(exchanged: Sequence[Collective]) -> tuple[Collective, ...]:
    """The same, those of one name together whichever GPUs they are among."""
    found: dict[str, Collective] = {}
    for each in exchanged:
        known = found.get(each.name)
        found[each.name] = replace(known, sizes=known.sizes + each.sizes) if known else each
    return tuple(found.values())
