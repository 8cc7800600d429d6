"""Limits on how much a peer can have computed, from its averaging rounds so far.

A peer's word for its own pace costs nothing. What it handed in is seen by those who averaged it;
so a pace counts as far as it was witnessed, and no peer for much more than the middle one.
"""

import math
import statistics
import threading
from collections import deque
from collections.abc import Mapping

from training.averaging.reduction import Round

REMEMBERED = 8  # rounds
IDLE = 1e-9  # samples per second: below it, a peer computes nothing, as helpers do
FASTEST = 4.0  # no peer's pace can be more than this many times the median
SLACK = 4.0  # a device may be so much faster for a while than it was


class Paces:
    """The witnessed paces of the others, in samples a second, by their identities in base 58.

    The main thread witnesses, the tracker's thread asks.
    """

    def __init__(self) -> None:
        self._witnessed: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def witness(self, seen: Round) -> None:
        """Take in a round: what each peer weighed, and the time since the round before."""
        if not 0.0 < seen.seconds < math.inf:
            return
        with self._lock:
            for peer, weight in seen.weights.items():
                if weight is not None:
                    paces = self._witnessed.setdefault(peer, deque(maxlen=REMEMBERED))
                    paces.append(weight / seen.seconds)

    def credible(self, declared: Mapping[str, float], own: str = "") -> dict[str, float]:
        """The most that each peer can compute a second, given what it declares.

        A peer can do `SLACK` times what it was seen to do, and nobody more than `FASTEST` times
        the middle one (the lower of two). One that was not witnessed yet can do what the middle
        one did.

        Args:
            own: the identity of this peer, which knows its own pace.

        >>> Paces().credible({"a": 1.0, "b": 2.0, "c": 3.0, "liar": 1e12})
        {'a': 4.0, 'b': 8.0, 'c': 8.0, 'liar': 8.0}
        """
        with self._lock:
            known = {p: max(paces) for p, paces in self._witnessed.items() if p in declared}
        if not known:  # a new run, or a peer that averages nothing and so sees nothing
            known = dict(declared)
        elif own in declared:
            known[own] = declared[own]
        computing = [pace for pace in known.values() if pace > IDLE]
        if not computing:
            return dict(declared)
        middle = statistics.median_low(computing)
        return {
            peer: min(SLACK * known[peer], FASTEST * middle) if peer in known else min(pace, middle)
            for peer, pace in declared.items()
        }

    def forget_all_but(self, present: Mapping[str, object]) -> None:
        """Keep the memory of those who are still there."""
        with self._lock:
            self._witnessed = {p: paces for p, paces in self._witnessed.items() if p in present}
