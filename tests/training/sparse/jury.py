"""Volunteers as judges, honest ones and liars, for tests and measurements."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from hivemind.utils.crypto import RSAPrivateKey

from training.access.grants import peer_id_of
from training.sparse import assignment, closing, verdict
from training.sparse.codec import Update
from training.sparse.host import Host
from training.sparse.verdict import Finding


class Manner(Enum):
    """The way in which accomplices lie.

    Attributes:
        ALWAYS: about every update.
        ALONE: about an update whose judges are all accomplices, so that nobody contradicts.
        SILENT: they do not answer.
    """

    ALWAYS = auto()
    ALONE = auto()
    SILENT = auto()


@dataclass
class Jury:
    """The judges of a run.

    Args:
        measure: an honest figure.
        accomplices: identities of those who lie.
        friends: identities whose updates they praise; they slander all others.

    Attributes:
        lies: false findings that were told.
    """

    keys: Sequence[RSAPrivateKey]
    measure: Callable[[Update], Finding]
    accomplices: Collection[str] = ()
    friends: Collection[str] = ()
    manner: Manner = Manner.ALWAYS
    lies: int = 0
    _known: dict[str, Finding] = field(default_factory=dict)

    def answer(self, host: Host) -> int:
        """Hand in the verdicts of the open round; gives how many."""
        of = host.swarm.round_of(host.state)
        found = assignment.find(host.swarm, of)
        if found is None:
            return 0
        announced, assigned = found
        owners = {one.sha256: one.peer for one in host.taken()}
        judges: dict[str, set[str]] = {}
        for judge, share in assigned.shares.items():
            for sha256 in share:
                judges.setdefault(sha256, set()).add(judge)
        self._known = {
            sha256: self.measure(closing.read_update(host.swarm, of, sha256)) for sha256 in judges
        }
        answers = 0
        for key in self.keys:
            judge = peer_id_of(key.get_public_key().to_bytes().decode())
            is_accomplice = judge in self.accomplices
            if judge not in assigned.shares or (is_accomplice and self.manner is Manner.SILENT):
                continue
            findings = {
                sha256: self._lie(sha256, owners[sha256])
                if is_accomplice and self._dares(judges[sha256])
                else self._known[sha256]
                for sha256 in assigned.shares[judge]
            }
            host.take_verdict(verdict.write(of, announced, findings, key), b"")
            answers += 1
        return answers

    def _dares(self, judges: Collection[str]) -> bool:
        return self.manner is Manner.ALWAYS or set(judges) <= set(self.accomplices)

    def _lie(self, sha256: str, owner: str) -> Finding:
        self.lies += 1
        honest = self._known[sha256]
        if not math.isfinite(honest.mean):
            return Finding(-0.01, 1e-6)
        size = abs(honest.mean) + 10 * honest.error
        return Finding(-size if owner in self.friends else size, honest.variance)
