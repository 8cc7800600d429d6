"""A peer's way through the rounds: train locally, publish what was learned, follow the list."""

import math
import time
from collections.abc import Callable, Sequence

import torch

from training.access.signatures import PeerKey
from training.sparse import closing, payload
from training.sparse.feedback import ErrorFeedback
from training.sparse.local import Compute, train_locally
from training.sparse.shared import SharedState
from training.sparse.store import Store
from training.sparse.swarm import Swarm


class Peer:
    """One peer of a run.

    Args:
        state: that the peer begins with.
        parameters: the model's, in the layout's order. optimizer: of the local steps.
        compute: adds one local step's gradients, and gives the samples that went in.
        decay: of the error feedback.
        max_gradient_norm: longer gradients of a local step are shortened to it.
        keeps_residual: begin the local steps with what this peer has learned and not sent yet.
            Otherwise, as in SparseLoCo, it begins with the shared weights, learns the same again
            and adds it to the rest: up to 64 times until its turn comes, so that only a decay
            below 1 keeps the steps from growing.

    Attributes:
        state: the shared state that this peer has reached.
        bytes_sent: of all payloads.
    """

    def __init__(
        self,
        swarm: Swarm,
        state: SharedState,
        parameters: Sequence[torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
        compute: Compute,
        key: PeerKey,
        decay: float = 1.0,
        max_gradient_norm: float = math.inf,
        keeps_residual: bool = True,
    ) -> None:
        self.swarm, self.state, self.bytes_sent = swarm, state, 0
        self._parameters, self._optimizer, self._compute = parameters, optimizer, compute
        self._key, self._max_gradient_norm = key, max_gradient_norm
        self._keeps_residual = keeps_residual
        self._feedback = ErrorFeedback(swarm.layout, decay)
        self._published: str | None = None

    def contribute(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> str | None:
        """Train for some time on the shared weights, and publish the update.

        Gives the payload's SHA-256; None where no local step had sound gradients.

        Raises:
            RuntimeError: the round has a payload of ours already; `follow` it first.
        """
        if self._published is not None:
            raise RuntimeError("this peer has a payload in the round already")
        start = self.state.weights
        if self._keeps_residual:
            start = start - self._feedback.residual
        drift = train_locally(
            start,
            self._parameters,
            self._optimizer,
            self._compute,
            seconds,
            self._max_gradient_norm,
            clock,
        )
        if not drift.samples:
            return None
        update = self._feedback.offer(drift.difference)
        of = self.swarm.round_of(self.state)
        content = payload.write(of, drift.samples, update, self._key)
        self._published = self.swarm.store.put(content)
        self.swarm.store.point(_name(of.number, self._published), self._published)
        self.bytes_sent += len(content)
        return self._published

    def follow(self) -> int:
        """Apply the rounds that have been closed; gives how many.

        Raises:
            ClosingError: a list or a payload cannot be had or does not hold.
        """
        rounds = 0
        while (found := closing.find(self.swarm, self.state.round)) is not None:
            self.state = closing.apply(self.swarm, found, self.state)
            self._feedback.settle(any(one.sha256 == self._published for one in found.taken))
            self._published = None
            rounds += 1
        return rounds


def published(store: Store, number: int) -> list[str]:
    """The payloads that peers have published for a round, unchecked: their SHA-256."""
    found = [store.find(name) for name in store.names(_name(number))]
    return [sha256 for sha256 in found if sha256 is not None]


def _name(number: int, *more: str) -> str:
    return "/".join((f"payloads/{number:09d}", *more))
