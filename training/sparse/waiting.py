"""The end of a round: whom it waits for, and until when.

Only updates that the round keeps count. It lasts at least the time of its local steps. After that
it ends as soon as everybody expected has sent, or a grace period after a quorum. Whoever was
missing in the last round is waited for beyond the grace period, so that fast connections never
starve a slow one; whoever was left out or missing three times running is not waited for.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from calculator.errors import InputError
from training.sparse.closing import MOST_PAYLOADS

MISSES = 3  # rounds running without a kept update, after which nobody waits for a peer


@dataclass(frozen=True, slots=True)
class ClosingPolicy:
    """The rules by which a round closes; times in seconds.

    Attributes:
        quorum: kept updates from which the grace period runs.
        grace: time after the quorum in which updates are still taken.
        longest: time after which a round closes whatever it keeps; without any update it goes on.
        shortest: time for which it stays open in any case, that of its local steps.
        largest_norm: that an update may have.
    """

    quorum: int
    grace: float
    longest: float = math.inf
    shortest: float = 0.0
    largest_norm: float = math.inf

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for a value out of range.
        """
        if not 1 <= self.quorum <= MOST_PAYLOADS:
            raise InputError("quorum", self.quorum, f"must be from 1 to {MOST_PAYLOADS}")
        for field in ("grace", "longest", "shortest", "largest_norm"):
            if not getattr(self, field) >= 0:
                raise InputError(field, getattr(self, field), "must be at least 0")


class Waiting:
    """Decides when the rounds of a run close.

    Args:
        now: when the first round opens, on the clock of all times here.
    """

    def __init__(self, policy: ClosingPolicy, now: float) -> None:
        self._policy, self._opened = policy, now
        self._quorum_at: float | None = None
        self._last: frozenset[str] = frozenset()  # whose updates the last round kept
        self._misses: dict[str, int] = {}  # rounds running

    def expected(self, training: Collection[str], gone: Collection[str]) -> set[str]:
        """Peers that the round waits for.

        Args:
            training: heard to train since the round opened. gone: said goodbye, or fell silent.
        """
        known = self._last.union(training).difference(gone)
        return {peer for peer in known if self._misses.get(peer, 0) < MISSES}

    def is_due(
        self, now: float, taken: Collection[str], kept: Collection[str], expected: set[str]
    ) -> bool:
        """True when it is time to close the round.

        Args:
            taken: peers whose updates have come. kept: those whose updates would count.
        """
        passed = now - self._opened
        if not taken or passed < self._policy.shortest:
            return False
        if passed >= self._policy.longest:
            return True
        missing = expected.difference(taken)
        if kept and expected and not missing:
            return True
        if len(kept) < self._policy.quorum:
            return False
        if self._quorum_at is None:
            self._quorum_at = now
        was_missing = any(self._misses.get(peer) for peer in missing)
        return now >= self._quorum_at + self._policy.grace and not was_missing

    def close(self, now: float, kept: Collection[str], expected: Collection[str]) -> None:
        """Note whom the round kept, and open the next."""
        self._last = frozenset(kept)
        for peer in self._last:
            self._misses.pop(peer, None)
        for peer in set(expected) - self._last:
            self._misses[peer] = self._misses.get(peer, 0) + 1
        self._opened, self._quorum_at = now, None
