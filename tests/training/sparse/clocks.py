"""A clock for tests, which is set."""

import itertools
from collections.abc import Iterator
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
