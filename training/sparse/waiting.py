"""The end of a round: whom it waits for, and until when.

Only updates that the round keeps count. It lasts at least the time of its local steps. After that
it ends as soon as everybody expected has sent, or a grace period after a quorum. Whoever was
missing in the last round is waited for beyond the grace period, so that fast connections never
starve a slow one; whoever was left out or missing three times running is not waited for.
"""

from collections.abc import Collection

from training.run.recipes import SparseSettings

MISSES = 3  # rounds running without a kept update, after which nobody waits for a peer


class Waiting:
    """Decides when the rounds of a run close.

    Args:
        now: when the first round opens, on the clock of all times here.
    """

    def __init__(self, settings: SparseSettings, now: float) -> None:
        self._settings, self._opened = settings, now
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
        if not taken or passed < self._settings.seconds:
            return False
        if passed >= self._settings.longest:
            return True
        missing = expected.difference(taken)
        if kept and expected and not missing:
            return True
        if len(kept) < self._settings.quorum:
            return False
        if self._quorum_at is None:
            self._quorum_at = now
        was_missing = any(self._misses.get(peer) for peer in missing)
        return now >= self._quorum_at + self._settings.grace and not was_missing

    def close(self, now: float, kept: Collection[str], expected: Collection[str]) -> None:
        """Note whom the round kept, and open the next."""
        self._last = frozenset(kept)
        for peer in self._last:
            self._misses.pop(peer, None)
        for peer in set(expected) - self._last:
            self._misses[peer] = self._misses.get(peer, 0) + 1
        self._opened, self._quorum_at = now, None
