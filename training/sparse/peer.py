"""A peer's way through the rounds: train locally, publish what was learned, follow the list."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from training.access.signatures import PeerKey
from training.sparse import closing, payload
from training.sparse.closing import Swarm
from training.sparse.codec import Update, decode, encode
from training.sparse.layout import Layout
from training.sparse.shared import SharedState, flatten, load
from training.sparse.store import Store


class ErrorFeedback:
    r"""Adds up what a peer has learned; sends the largest part of it, and keeps the rest.

    .. math::
        e \leftarrow e + \Delta, \quad
        \hat\Delta = D(E(e)), \quad
        e \leftarrow e - \hat\Delta

    with the pseudo-gradient Delta, encoded by E and decoded by D. The last step is only made when
    a round took the update: nothing that was learned is lost. Only where the update arrived in time
    and was rejected, all of it is given up: else the same would be sent again, and the steps would
    begin with it, round after round.
    Source: SparseLoCo, arXiv:2508.15706, algorithm 1, with beta = 1.

    Attributes:
        residual: e, float32 [layout.elements].
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.residual = torch.zeros(layout.elements)
        self._offered: Update | None = None

    @torch.no_grad()
    def offer(self, difference: torch.Tensor) -> bytes:
        """Add a pseudo-gradient, and encode the update to send; `settle` must follow.

        Raises:
            RuntimeError: the update before has not been settled.
            InputError: the pseudo-gradient is not finite, or of another length.
        """
        if self._offered is not None:
            raise RuntimeError("settle the last update first")
        total = self.residual + difference.to(self.residual.device)
        content = encode(total, self.layout)
        self.residual = total
        self._offered = decode(content, self.layout)
        return content

    @torch.no_grad()
    def settle(self, was_taken: bool) -> None:
        """Take note of the round's closing: what it took has been sent, what it left has not."""
        offered, self._offered = self._offered, None
        if was_taken and offered is not None:
            self.residual[offered.places] -= offered.values

    def give_up(self) -> None:
        """Begin again without what has not been sent."""
        self._offered = None
        self.residual.zero_()


Compute = Callable[[], int]  # adds one local step's gradients; gives the samples that went in


def train_locally(
    start: torch.Tensor,
    parameters: Sequence[torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    compute: Compute,
    seconds: float,
    max_gradient_norm: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[torch.Tensor, int]:
    """Make local steps for some time, each peer at its own pace.

    Gives the pseudo-gradient, first weights minus last ones, float32 [elements], and the samples
    that it was computed from.

    A step that began in time is completed, and one is always made. A step whose gradients are not
    finite changes nothing and counts no samples. The optimizer keeps its states from round to
    round.

    Args:
        start: the weights to begin with, a flat vector.
        parameters: the model's, in the vector's order; afterwards they hold the last weights.
        max_gradient_norm: longer gradients are shortened to it.
        clock: gives the time in seconds.
    """
    load(start, parameters)
    samples = steps = 0
    end = clock() + seconds
    while not steps or clock() < end:
        optimizer.zero_grad(set_to_none=True)
        computed = compute()
        steps += 1
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_gradient_norm)
        if bool(norm.isfinite()):
            optimizer.step()
            samples += computed
    optimizer.zero_grad(set_to_none=True)
    local = flatten(parameters)
    return start.to(local.device) - local, samples


class Peer:
    """One peer of a run.

    Its local steps begin with what it has learned and not sent yet. In SparseLoCo they begin with
    the shared weights: a peer learns the same again and adds it to the rest, up to 64 times until
    its turn comes, so that only a decay of the rest keeps the steps from growing.

    Args:
        state: that the peer begins with.
        parameters: the model's, in the layout's order. optimizer: of the local steps.
        compute: adds one local step's gradients, and gives the samples that went in.
        max_gradient_norm: longer gradients of a local step are shortened to it.

    Attributes:
        state: the shared state that this peer has reached.
        bytes_sent: of all payloads.
        samples, rounds: of the payloads that rounds took.
        left_out: payloads that arrived in time and were rejected.
    """

    def __init__(
        self,
        swarm: Swarm,
        state: SharedState,
        parameters: Sequence[torch.nn.Parameter],
        optimizer: torch.optim.Optimizer,
        compute: Compute,
        key: PeerKey,
        max_gradient_norm: float = math.inf,
    ) -> None:
        self.swarm, self.state, self.bytes_sent = swarm, state, 0
        self._parameters, self._optimizer, self._compute = parameters, optimizer, compute
        self._key, self._max_gradient_norm = key, max_gradient_norm
        self._feedback = ErrorFeedback(swarm.layout)
        self.samples = self.rounds = self.left_out = 0
        self._published: str | None = None
        self._is_handed_in = False
        self._content = b""
        self._pending = 0  # samples of the payload

    def learn(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> str | None:
        """Train for some time on the shared weights, and make the payload for `publish`.

        Gives its SHA-256; None where no local step had sound gradients.

        Raises:
            RuntimeError: the round has a payload of ours already; `follow` it first.
        """
        if self._published is not None:
            raise RuntimeError("this peer has a payload in the round already")
        difference, samples = train_locally(
            self.state.weights - self._feedback.residual,
            self._parameters,
            self._optimizer,
            self._compute,
            seconds,
            self._max_gradient_norm,
            clock,
        )
        if not samples:
            return None
        update = self._feedback.offer(difference)
        of = self.swarm.round_of(self.state)
        self._content = payload.write(of, samples, update, self._key)
        self._published = hashlib.sha256(self._content).hexdigest()
        self._pending = samples
        return self._published

    def publish(self) -> None:
        """Hand in the payload; where that fails, it can be tried again.

        Raises:
            RuntimeError: there is none.
            StoreError: the store did not take it.
        """
        if self._published is None:
            raise RuntimeError("this peer has no payload to publish")
        self.swarm.store.put(self._content)
        name_payload(self.swarm.store, self.state.round, self._published)
        self._is_handed_in = True
        self.bytes_sent += len(self._content)

    def adopt(self, state: SharedState) -> None:
        """Go on from another state; what was not sent is kept, and an open payload is not sent."""
        self.state = state
        self._settle(was_taken=False)

    def memory(self) -> dict[str, Any]:
        """The unsent rest, the moments and the credit, for a new process to go on with."""
        return {
            "residual": self._feedback.residual,
            "optimizer": self._optimizer.state_dict(),
            "samples": self.samples,
            "rounds": self.rounds,
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on from what `memory` gave; raises ValueError where it is that of another model."""
        residual = memory["residual"]
        if residual.shape != self._feedback.residual.shape or not bool(residual.isfinite().all()):
            raise ValueError("the memory of another model")
        self._optimizer.load_state_dict(memory["optimizer"])
        self._feedback.residual = residual
        self.samples, self.rounds = memory["samples"], memory["rounds"]

    def follow(self) -> int:
        """Apply the rounds that have been closed; gives how many.

        Raises:
            ClosingError: a list or a payload cannot be had or does not hold.
        """
        rounds = 0
        while (found := closing.find(self.swarm, self.state.round)) is not None:
            self.state = closing.apply(self.swarm, found, self.state)
            was_taken = any(one.sha256 == self._published for one in found.taken)
            if self._is_handed_in and not was_taken:
                self._feedback.give_up()
                self.left_out += 1
            self._settle(was_taken=was_taken)
            rounds += 1
        return rounds

    def _settle(self, *, was_taken: bool) -> None:
        self._feedback.settle(was_taken)
        if was_taken:
            self.samples += self._pending
            self.rounds += 1
        self._published, self._content, self._pending = None, b"", 0
        self._is_handed_in = False


def name_payload(store: Store, number: int, sha256: str) -> None:
    """Name a payload as one of a round."""
    store.point(_name(number, sha256), sha256)


def published(store: Store, number: int) -> list[str]:
    """The payloads that peers have published for a round, unchecked: their SHA-256."""
    found = [store.find(name) for name in names_of(store, number)]
    return [sha256 for sha256 in found if sha256 is not None]


def names_of(store: Store, number: int) -> list[str]:
    """The names of the payloads that peers have published for a round."""
    return store.names(_name(number))


def _name(number: int, *more: str) -> str:
    return "/".join((f"payloads/{number:09d}", *more))
