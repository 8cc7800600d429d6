"""A round that still takes payloads, for whoever closes it."""

import hashlib
import math
from collections.abc import Callable, Collection

from training.access.envelope import FileError
from training.access.signatures import PeerKey
from training.run.recipes import MOST_PAYLOADS
from training.sparse import closing, payload
from training.sparse.closing import Closing, Swarm, Taken
from training.sparse.codec import Update
from training.sparse.shared import SharedState


class OpenRound:
    """A round on its way: takes the first good payload of each peer.

    Args:
        state: that the round begins with.
        largest_norm: that a payload's update may have.
        is_banned: True for the identity of a peer from which nothing is taken.

    Attributes:
        arrived: the payloads so far, in the order in which they came.
        takes_more: false once it is closing.
    """

    def __init__(
        self,
        swarm: Swarm,
        state: SharedState,
        largest_norm: float = math.inf,
        is_banned: Callable[[str], bool] = lambda _peer: False,
    ) -> None:
        self.of = swarm.round_of(state)
        self._swarm, self._state, self._largest_norm = swarm, state, largest_norm
        self._is_banned = is_banned
        self.takes_more = True
        self.arrived: dict[str, Taken] = {}

    @property
    def taken(self) -> tuple[Taken, ...]:
        """The payloads so far, in an order that does not depend on when they came."""
        return tuple(self.arrived[peer] for peer in sorted(self.arrived))

    def offer(self, sha256: str) -> Taken:
        """Check a payload that a peer has published, and take it.

        Raises:
            FileError: with the reason, when the round does not take it.
            StoreError: it cannot be had.
        """
        return self.take(self._swarm.store.get(sha256, payload.most_bytes(self._swarm.layout)))

    def take(self, content: bytes, peer: str | None = None) -> Taken:
        """Check a payload, keep its file and take it; again the same one changes nothing.

        Args:
            peer: identity that it must be of; None: any.

        Raises:
            FileError: with the reason, when the round does not take it; it is not kept.
        """
        found = payload.read(content, self.of, self._swarm.layout, self._largest_norm)
        signer = found.peer
        if peer not in (None, signer):
            raise FileError("its peer has no access to the run")
        if self._is_banned(signer):
            raise FileError("its peer is banned from the run")
        before = self.arrived.get(signer)
        if before is not None:
            if before.sha256 == hashlib.sha256(content).hexdigest():
                return before
            raise FileError("its peer has one in this round already")
        if not self.takes_more:
            raise FileError("the round is closing")
        if len(self.arrived) >= MOST_PAYLOADS:
            raise FileError("the round is full")
        sha256 = self._swarm.store.put(content)
        taken = self.arrived[signer] = Taken(sha256, signer, found.samples)
        return taken

    def read(self, taken: Taken) -> Update:
        """The update of a payload that was taken.

        Raises:
            ClosingError: it can no longer be had.
        """
        return closing.read_payload(self._swarm, self.of, taken).update

    def leave_out(self, peers: Collection[str]) -> None:
        """Do not take the payloads of some peers after all."""
        self.arrived = {peer: one for peer, one in self.arrived.items() if peer not in peers}

    def close(self, key: PeerKey) -> SharedState:
        """Make the round's step, publish the signed list, and give the state afterwards.

        Raises:
            ClosingError: a payload can no longer be had.
        """
        after = closing.step(self._swarm, self.of, self.taken, self._state)
        closing.publish(self._swarm, Closing(self.of, self.taken, after.digest()), key)
        return after
