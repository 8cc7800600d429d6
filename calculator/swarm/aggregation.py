r"""Averages of many volunteers' gradients: mean, median and CenteredClip.

A volunteer that sends wrong values, by mistake or on purpose, can move the mean as far as it likes.
The other two limit the effect of a minority. Vectors are sequences of floats with equal lengths; a
vector's weight is the number of training sequences behind it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from calculator.errors import InputError

MOST_ITERATIONS: Final = 1000

Vector = Sequence[float]


class Aggregation(StrEnum):
    """Ways to average many vectors into one."""

    MEAN = "mean"
    MEDIAN = "median"
    CENTERED_CLIP = "centered-clip"


@dataclass(frozen=True, slots=True)
class Clipping:
    """Settings of CenteredClip.

    Attributes:
        radius: longest step toward one vector in an iteration, in the vectors' own unit.
        iterations: number of times that the center moves.
    """

    radius: float
    iterations: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise InputError("radius", self.radius, "must be a finite number above 0")
        if not 1 <= self.iterations <= MOST_ITERATIONS:
            rule = f"must be a whole number from 1 to {MOST_ITERATIONS:,}"
            raise InputError("iterations", self.iterations, rule)


def mean(vectors: Sequence[Vector], weights: Sequence[float] | None = None) -> list[float]:
    r"""The weighted mean: averaging without a defense.

    $$\bar x = \frac{\sum_i w_i x_i}{\sum_i w_i}$$

    with x_i the vector and w_i the weight of volunteer i; without weights, all count the same.

    >>> mean([[1.0, 2.0], [3.0, 6.0]], weights=[3, 1])  # (3 + 3) / 4 and (6 + 6) / 4
    [1.5, 3.0]

    Raises:
        InputError: if there are no vectors, their lengths differ, or an element is not finite.
    """
    shares = _shares(vectors, weights)
    return [_weighted_sum(column, shares) for column in zip(*vectors, strict=True)]


def coordinate_median(
    vectors: Sequence[Vector], weights: Sequence[float] | None = None
) -> list[float]:
    r"""The weighted median of each coordinate.

    The weighted median is the smallest number whose weight, together with the weights of all
    smaller numbers, exceeds half of the total; if they are exactly half, it is the mean of that
    number and the next. Volunteers with less than half of the weight cannot move it beyond the
    values of the others.

    >>> coordinate_median([[1.0, 5.0], [2.0, 4.0], [1000.0, -3000.0]])
    [2.0, 4.0]
    >>> coordinate_median([[1.0], [2.0], [10.0]], weights=[1, 1, 2])  # 1 + 1 is half of 4
    [6.0]

    Source: yin (definition 1)

    Raises:
        InputError: if there are no vectors, their lengths differ, or an element is not finite.
    """
    shares = _shares(vectors, weights)
    return [_median(column, shares) for column in zip(*vectors, strict=True)]


def centered_clip_path(
    vectors: Sequence[Vector],
    clipping: Clipping,
    weights: Sequence[float] | None = None,
    start: Vector | None = None,
) -> list[list[float]]:
    r"""The iterations + 1 centers of CenteredClip, from the start to the result.

    $$v_{l+1} = v_l + \frac{\sum_i w_i (x_i - v_l) \min(1, \tau / \lVert x_i - v_l \rVert)}
    {\sum_i w_i}$$

    with x_i the vector and w_i the weight of volunteer i, v_l the center after l iterations and
    tau the clipping radius. In each iteration a volunteer moves the center by at most its share of
    tau, no matter how large its vector is. The paper starts at the previous step's result; without
    `start`, as in a first step, v_0 is zero.

    >>> path = centered_clip_path([[3.0, 4.0], [0.0, 0.0]], Clipping(radius=1, iterations=2))
    >>> [[round(number, 12) for number in centre] for centre in path]  # by hand, lengths 5 and 4.5
    [[0.0, 0.0], [0.3, 0.4], [0.45, 0.6]]

    Source: karimireddy, gorbunov

    Raises:
        InputError: if there are no vectors, their lengths differ, or an element is not finite.
    """
    shares = _shares(vectors, weights)
    centre = [0.0] * len(vectors[0]) if start is None else [float(number) for number in start]
    _check_vector("start", centre, len(vectors[0]))
    path = [centre]
    for _ in range(clipping.iterations):
        path.append(_moved(path[-1], vectors, shares, clipping.radius))
    return path


def centered_clip(
    vectors: Sequence[Vector],
    clipping: Clipping,
    weights: Sequence[float] | None = None,
    start: Vector | None = None,
) -> list[float]:
    """The last center of `centered_clip_path`.

    >>> near = centered_clip([[1.0], [1.0], [1.0], [1e9]], Clipping(radius=1, iterations=100))
    >>> round(near[0], 6)  # three pull by (1 - v), one pushes by 1: at rest at v = 4/3
    1.333333

    Source: karimireddy, gorbunov
    """
    return centered_clip_path(vectors, clipping, weights, start)[-1]


def _moved(
    centre: Vector, vectors: Sequence[Vector], shares: Sequence[float], radius: float
) -> list[float]:
    moved = list(centre)
    for vector, share in zip(vectors, shares, strict=True):
        distance = math.dist(vector, centre)
        factor = share * (min(1.0, radius / distance) if distance else 1.0)
        for index, (number, middle) in enumerate(zip(vector, centre, strict=True)):
            moved[index] += factor * (number - middle)
    return moved


def _weighted_sum(numbers: Sequence[float], shares: Sequence[float]) -> float:
    return math.fsum(number * share for number, share in zip(numbers, shares, strict=True))


def _median(numbers: Sequence[float], shares: Sequence[float]) -> float:
    ordered = sorted((n, share) for n, share in zip(numbers, shares, strict=True) if share > 0)
    below = 0.0
    for (number, share), (following, _) in pairwise([*ordered, ordered[-1]]):
        below += share
        if math.isclose(below, 0.5):
            return (number + following) / 2
        if below > 0.5:
            break
    return float(number)


def _shares(vectors: Sequence[Vector], weights: Sequence[float] | None) -> list[float]:
    """The weights as fractions of their sum, after checking all arguments."""
    if not vectors:
        raise InputError("vectors", 0, "must be at least one")
    for vector in vectors:
        _check_vector("vectors", vector, len(vectors[0]))
    given = [1.0] * len(vectors) if weights is None else list(weights)
    if len(given) != len(vectors):
        raise InputError("weights", len(given), f"must be {len(vectors)}, one for each vector")
    for weight in given:
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError("weights", weight, "must be finite and not below 0")
    total = math.fsum(given)
    if total == 0:
        raise InputError("weights", total, "must not all be 0")
    return [weight / total for weight in given]


def _check_vector(field: str, vector: Vector, length: int) -> None:
    if not vector or len(vector) != length:
        raise InputError(field, len(vector), f"must have {max(length, 1)} elements like the others")
    for number in vector:
        if not math.isfinite(number):
            raise InputError(field, number, "must be finite")
