"""Clocks for tests: one that is set, one that ticks at every look."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Clock:
    """A clock that stands still.

    Attributes:
        now: seconds.
    """

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def ticking() -> Callable[[], float]:
    """A clock that is a second later at each look."""
    count = itertools.count()
    return lambda: next(count)
