"""A round that still takes payloads, for whoever closes it.

It closes a grace period after a quorum of payloads has come, so that it waits neither for the
slowest peer nor for a missing one.
"""

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from calculator.errors import InputError
from training.access.signatures import PeerKey
from training.sparse import closing, payload
from training.sparse.closing import MOST_PAYLOADS, Closing, Taken
from training.sparse.codec import Update
from training.sparse.payload import PayloadError
from training.sparse.shared import SharedState
from training.sparse.store import StoreError
from training.sparse.swarm import Swarm


@dataclass(frozen=True, slots=True)
class ClosingPolicy:
    """The rules by which a round closes.

    Attributes:
        quorum: payloads from which the grace period runs.
        grace: seconds after the quorum during which payloads are still taken.
        longest: seconds after which a round closes with fewer payloads than the quorum; with
            none, it goes on until there is one.
        largest_norm: that a payload's update may have.
    """

    quorum: int
    grace: float
    longest: float = math.inf
    largest_norm: float = math.inf

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for a value out of range.
        """
        if not 1 <= self.quorum <= MOST_PAYLOADS:
            raise InputError("quorum", self.quorum, f"must be from 1 to {MOST_PAYLOADS}")
        for field in ("grace", "longest", "largest_norm"):
            if not getattr(self, field) >= 0:
                raise InputError(field, getattr(self, field), "must be at least 0")


class OpenRound:
    """A round on its way: takes the first good payload of each peer.

    Args:
        state: that the round begins with.
        opened: when it began, in seconds of the clock that `offer` is given.
        is_member: True for the identity of a peer that may take part.

    Attributes:
        closes_at: on the same clock; infinity while that is open.
        takes_more: false once its updates are being judged.
    """

    def __init__(
        self,
        swarm: Swarm,
        state: SharedState,
        policy: ClosingPolicy,
        opened: float,
        is_member: Callable[[str], bool] = lambda _peer: True,
    ) -> None:
        self.of, self.closes_at = swarm.round_of(state), opened + policy.longest
        self._swarm, self._state, self._policy = swarm, state, policy
        self._is_member = is_member
        self.takes_more = True
        self._taken: dict[str, Taken] = {}

    @property
    def taken(self) -> tuple[Taken, ...]:
        """The payloads so far, in an order that does not depend on when they came."""
        return tuple(self._taken[peer] for peer in sorted(self._taken))

    def offer(self, sha256: str, now: float) -> Taken:
        """Check a payload that a peer has published, and take it.

        Raises:
            PayloadError: with the reason, when the round does not take it.
        """
        try:
            most = payload.most_bytes(self._swarm.layout)
            content = self._swarm.store.get(sha256, most)
        except StoreError as error:
            raise PayloadError(str(error)) from error
        return self.take(content, now)

    def take(self, content: bytes, now: float, peer: str | None = None) -> Taken:
        """Check a payload, keep its file and take it; again the same one changes nothing.

        Args:
            peer: identity that it must be of; None: any.

        Raises:
            PayloadError: with the reason, when the round does not take it; it is not kept.
        """
        layout = self._swarm.layout
        found = payload.read(content, self.of, layout, self._policy.largest_norm)
        before = self._check(found.peer, hashlib.sha256(content).hexdigest(), peer)
        if before is not None:
            return before
        sha256 = self._swarm.store.put(content)
        taken = self._taken[found.peer] = Taken(sha256, found.peer, found.samples)
        if len(self._taken) == self._policy.quorum:
            self.closes_at = min(self.closes_at, now + self._policy.grace)
        return taken

    def expect(self, head: bytes, sha256: str, peer: str | None = None) -> str:
        """See by a payload's head that the round would take the payload; gives its peer.

        Args:
            sha256: that the whole file will have. peer: as of `take`.

        Raises:
            PayloadError: with the reason, when the round would not.
        """
        signer = payload.read_head(head, self.of)
        self._check(signer, sha256, peer)
        return signer

    def _check(self, signer: str, sha256: str, peer: str | None) -> Taken | None:
        """Check that a peer may have a payload here; gives it if it is there already."""
        if peer not in (None, signer) or not self._is_member(signer):
            raise PayloadError("its peer has no access to the run")
        before = self._taken.get(signer)
        if before is not None:
            if before.sha256 == sha256:
                return before
            raise PayloadError("its peer has one in this round already")
        if not self.takes_more:
            raise PayloadError("the round takes no more: its updates are being judged")
        if len(self._taken) >= MOST_PAYLOADS:
            raise PayloadError("the round is full")
        return None

    def read(self, taken: Taken) -> Update:
        """The update of a payload that was taken.

        Raises:
            ClosingError: it can no longer be had.
        """
        return closing.read_payload(self._swarm, self.of, taken).update

    def leave_out(self, peers: Collection[str]) -> None:
        """Do not take the payloads of some peers after all."""
        self._taken = {peer: one for peer, one in self._taken.items() if peer not in peers}

    def is_due(self, now: float) -> bool:
        """True when it is time to close the round."""
        return bool(self._taken) and now >= self.closes_at

    def close(self, key: PeerKey) -> SharedState:
        """Make the round's step, publish the signed list, and give the state afterwards.

        Raises:
            ClosingError: a payload can no longer be had.
        """
        after = closing.step(self._swarm, self.of, self.taken, self._state)
        closing.publish(self._swarm, Closing(self.of, self.taken, after.digest()), key)
        return after
