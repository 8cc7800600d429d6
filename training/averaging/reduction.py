"""One averaging round in a group: what is refused, what is bounded, and what was seen.

The library's reducer adds up whatever comes, with whatever weight its sender names. Here a part
must be of the right shape and finite, its weight is bounded, the group's rule makes one tensor of
all, and a record is kept of who took part. Whoever breaks a rule is banned from the round; the
others go on without it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.partition import AllreduceException, BannedException, TensorPartReducer
from hivemind.p2p import PeerID

from calculator.swarm.aggregation import Aggregation
from training.averaging.aggregation import aggregate

ABSURD = 10.0  # a weight of so many times the largest is no mistake: its sender is refused


@dataclass(frozen=True)
class WeightBounds:
    """Limits on the weight that a peer claims for itself.

    Attributes:
        largest: the most that any weight counts.
        unpaced: what a peer without a known pace counts, and the slack of one with.
        paces: credible samples a second by peer, see `paces`; None: only `largest` bounds.
        seconds: time since the round before.
    """

    largest: float
    unpaced: float = 0.0
    paces: dict[PeerID, float] | None = None
    seconds: float = math.inf

    def of(self, peer: PeerID) -> float:
        """The most that this peer's parts may weigh."""
        if self.paces is None:
            return self.largest
        pace = self.paces.get(peer, 0.0)
        possible = self.unpaced + (pace * self.seconds if pace else 0.0)
        return min(self.largest, possible)


@dataclass(frozen=True)
class Round:
    """A peer's observations of an averaging round.

    Attributes:
        weights: of the others in the group by their identity in base 58, as they came and were
            bounded; None where this peer saw none, since it averaged nothing or refused them.
        answered: the share of our values that the group gave back averaged.
        refused: who was banned, and why.
        seconds: time since this peer's round before, infinite at its first.
    """

    weights: dict[str, float | None]
    answered: float = 1.0
    refused: dict[str, str] = field(default_factory=dict)
    seconds: float = math.inf


class PartCollector:
    """Stands where the library keeps a running sum: holds the parts until all are there.

    That needs no memory of its own: the library keeps every part until its answer is sent.
    """

    def __init__(self, rule: Aggregation) -> None:
        self._rule = rule
        self._parts: list[torch.Tensor] = []
        self._weights: list[float] = []

    def add_(self, part: torch.Tensor, alpha: float) -> None:
        """Take a part and its weight."""
        self._parts.append(part)
        self._weights.append(alpha)

    def div_(self, _total_weight: float) -> torch.Tensor:
        """Make one of all parts; called once, when they are complete."""
        return aggregate(self._parts, self._weights, self._rule)


class GuardedReducer(TensorPartReducer):
    """Aggregates the parts that this peer is responsible for.

    Args:
        rule: how.
        bound: the most that a sender may weigh, by its index. largest: that any may.
        own: this peer's own index among the senders, None where it sends nothing.
    """

    def __init__(
        self,
        part_shapes: tuple[torch.Size, ...],
        num_senders: int,
        rule: Aggregation,
        bound: Callable[[int], float],
        largest: float,
        own: int | None,
    ) -> None:
        self._rule, self._bound, self._largest, self._own = rule, bound, largest, own
        self.weights: dict[int, float] = {}
        self.refused: dict[int, str] = {}
        super().__init__(part_shapes, num_senders)

    def reset_accumulators(self) -> None:
        """Begin with the next part."""
        super().reset_accumulators()
        if not self.finished.is_set():
            self.accumulator: Any = PartCollector(self._rule)

    async def accumulate_part(
        self, sender_index: int, part_index: int, tensor_part: torch.Tensor, weight: float = 1.0
    ) -> torch.Tensor:
        """Take a sender's part; give what became of all when they are there.

        Raises:
            BannedException: when the part or its weight breaks a rule.
        """
        reason = self._reason_to_refuse(sender_index, part_index, tensor_part, weight)
        if reason and sender_index != self._own:
            self.refused.setdefault(sender_index, reason)
            self.weights.pop(sender_index, None)
            raise BannedException(reason)
        if reason:  # our own: the others must not wait for it
            tensor_part, weight = torch.zeros_like(tensor_part), 0.0
        bounded = self.weights.setdefault(sender_index, min(weight, self._bound(sender_index)))
        averaged: torch.Tensor = await super().accumulate_part(
            sender_index, part_index, tensor_part, min(weight, bounded)
        )
        return averaged

    def _reason_to_refuse(
        self, sender_index: int, part_index: int, part: torch.Tensor, weight: float
    ) -> str | None:
        if part_index >= self.num_parts or part.shape != self.part_shapes[part_index]:
            return "a part of the wrong shape"
        if not (part.is_floating_point() and bool(part.isfinite().all())):
            return "values that are not finite"
        if not (math.isfinite(weight) and weight >= 0):
            return f"a weight of {weight}"
        if weight > ABSURD * self._largest:
            return f"a weight of {weight:g}"
        return None


class GuardedRunner(AllReduceRunner):
    """Runs a round with a `GuardedReducer`, and looks at what the other reducers answer."""

    tensor_part_reducer: TensorPartReducer

    def __init__(self, *, rule: Aggregation, bounds: WeightBounds, **options: Any) -> None:
        super().__init__(**options)
        self._bounds = bounds
        self.tensor_part_reducer.finished.set()  # the library's own is not needed
        own = self.peer_id in self.sender_peer_ids
        self._reducer = GuardedReducer(
            tuple(part.shape for part in self.parts_for_local_averaging),
            len(self.sender_peer_ids),
            rule,
            lambda index: bounds.of(self.sender_peer_ids[index]),
            bounds.largest,
            self.sender_peer_ids.index(self.peer_id) if own else None,
        )
        self.tensor_part_reducer = self._reducer
        self.refused_reducers: dict[PeerID, str] = {}
        self._register = self.tensor_part_container.register_processed_part
        self.tensor_part_container.register_processed_part = self._register_sound_part

    def round(self) -> Round:
        """Our own observations, once the round is over."""
        reducer = self._reducer
        index_of = {peer: index for index, peer in enumerate(self.sender_peer_ids)}
        weights = {
            str(peer): reducer.weights.get(index_of.get(peer, -1))
            for peer in self.ordered_peer_ids
            if peer != self.peer_id
        }
        refused = {str(peer): why for peer, why in self.refused_reducers.items()}
        refused |= {str(self.sender_peer_ids[i]): why for i, why in reducer.refused.items()}
        container = self.tensor_part_container
        answered = 1.0 - container.failed_size / max(1, container.total_size)
        return Round(weights, answered, refused, self._bounds.seconds)

    def _register_sound_part(self, peer_index: int, part_index: int, part: torch.Tensor) -> None:
        """Take a reducer's answer if it can be one.

        Raises:
            AllreduceException: when it cannot: what is left of that reducer's share stays as it
                is here.
        """
        wanted, _ = self.tensor_part_container._input_parts_by_peer[peer_index][part_index]
        if part.shape != wanted.shape or not bool(part.isfinite().all()):
            peer = self.ordered_peer_ids[peer_index]
            self.refused_reducers[peer] = "an average that is not finite or of the wrong shape"
            raise AllreduceException(f"{peer} sent {self.refused_reducers[peer]}")
        self._register(peer_index, part_index, part)
