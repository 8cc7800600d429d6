"""Clocks for tests: one that is set, one that ticks at every look."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Clock:
    """A clock that is set, and a microsecond later at each look.

    Attributes:
        now: seconds.
    """

    now: float = 0.0
    _looks: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self) -> float:
        return self.now + 1e-6 * next(self._looks)


def ticking() -> Callable[[], float]:
    """A clock that is a second later at each look."""
    count = itertools.count()
    return lambda: next(count)
