"""The same vectors averaged in three ways and compared with the mean of the honest ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calculator.swarm.aggregation import (
    Aggregation,
    Clipping,
    Vector,
    centered_clip_path,
    coordinate_median,
    mean,
)


class Start(StrEnum):
    """Starting point of CenteredClip; with a history, it would be the previous step's result."""

    ZERO = "zero"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one way of averaging, compared with the honest mean.

    Attributes:
        error: distance from the honest mean, in the vectors' unit.
        angle: between the two, in degrees; None if one of them is zero.
        path: the centers of CenteredClip from the start on; otherwise only the result.
    """

    aggregation: Aggregation
    path: tuple[tuple[float, ...], ...]
    error: float
    angle: float | None

    @property
    def vector(self) -> tuple[float, ...]:
        """The result itself."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All three results for one set of vectors.

    Attributes:
        spread: root mean square distance of the honest vectors from their mean.
        middle_distance: median distance of all vectors from their coordinate-wise median.
    """

    honest: tuple[tuple[float, ...], ...]
    bad: tuple[tuple[float, ...], ...]
    clipping: Clipping
    honest_mean: tuple[float, ...]
    spread: float
    middle_distance: float
    results: tuple[Result, ...]


def compare(
    honest: Sequence[Vector],
    bad: Sequence[Vector],
    clipping: Clipping,
    start: Start = Start.ZERO,
) -> Comparison:
    """Average in all three ways.

    Raises:
        InputError: if no vector is honest, lengths differ, or an element is not finite.
    """
    aim = mean(honest)
    vectors = [*honest, *bad]
    median = coordinate_median(vectors)
    first = median if start is Start.MEDIAN else None
    paths = {
        Aggregation.MEAN: [mean(vectors)],
        Aggregation.MEDIAN: [median],
        Aggregation.CENTERED_CLIP: centered_clip_path(vectors, clipping, start=first),
    }
    return Comparison(
        tuple(map(tuple, honest)),
        tuple(map(tuple, bad)),
        clipping,
        tuple(aim),
        math.sqrt(sum(math.dist(vector, aim) ** 2 for vector in honest) / len(honest)),
        coordinate_median([[math.dist(vector, median)] for vector in vectors])[0],
        tuple(
            Result(kind, tuple(map(tuple, path)), math.dist(path[-1], aim), _angle(path[-1], aim))
            for kind, path in paths.items()
        ),
    )


def _angle(one: Vector, other: Vector) -> float | None:
    """Degrees between two vectors with two elements."""
    if not any(one) or not any(other):
        return None
    turn = math.atan2(one[1], one[0]) - math.atan2(other[1], other[0])
    return abs(math.degrees(math.remainder(turn, 2 * math.pi)))
