"""Attacks: vectors that a bad volunteer may send instead of its gradient."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from calculator.errors import InputError
from calculator.swarm.aggregation import Clipping, Vector, mean

JUST_INSIDE = 0.92  # of the clipping radius, so that colluding volunteers are not clipped
APART = 0.08  # of the clipping radius: distance from their common middle, so that each is visible


class Attack(StrEnum):
    """Ways to spoil an average."""

    PULL = "pull"
    FLIP = "flip"
    SCALE = "scale"
    COLLUDE = "collude"


# What a bad volunteer multiplies its honest gradient by; those that collude send something else.
FACTORS = {Attack.PULL: -2.0, Attack.FLIP: -1.0, Attack.SCALE: 1000.0}


def attack(kind: Attack, honest: Sequence[Vector], count: int, radius: float) -> list[list[float]]:
    """The vectors of `count` bad volunteers; number i would honestly have sent `honest[i]`.

    - pull: twice the gradient with its sign flipped, which outweighs one honest volunteer.
    - flip: the gradient with its sign flipped.
    - scale: the gradient times 1,000.
    - collude: all send nearly the same vector, just inside the clipping radius around the honest
      mean and at a right angle to it, where clipping does not shorten it. Needs two elements
      per vector.

    >>> attack(Attack.FLIP, [[1.0, 2.0], [3.0, 4.0]], 3, radius=1.0)
    [[-1.0, -2.0], [-3.0, -4.0], [-1.0, -2.0]]

    Source: karimireddy (sign flips), gorbunov (amplified ones, collusion)

    Raises:
        InputError: if the count is below 0, there is no honest vector, or the vectors have unequal
            lengths or elements that are not finite; with `collude`, also if the radius is not a
            finite number above 0 or the vectors do not have two elements.
    """
    if count < 0:
        raise InputError("bad_count", count, "must not be below 0")
    centre = mean(honest)  # this also checks the vectors
    own = [honest[index % len(honest)] for index in range(count)]
    match kind:
        case Attack.PULL | Attack.FLIP | Attack.SCALE:
            return _times(FACTORS[kind], own)
        case Attack.COLLUDE:
            if len(centre) != 2:
                rule = "must have two elements for volunteers that collude"
                raise InputError("vectors", len(centre), rule)
            middle = _beside(centre, Clipping(radius).radius * JUST_INSIDE)
            return [_around(middle, APART * radius, index / count) for index in range(count)]
        case _:
            assert_never(kind)


def _times(factor: float, vectors: Sequence[Vector]) -> list[list[float]]:
    return [[factor * number for number in vector] for vector in vectors]


def _beside(centre: Vector, distance: float) -> list[float]:
    """The point at `distance` from `centre`, at a right angle to the direction from zero."""
    x, y = centre
    length = math.hypot(x, y) or 1.0
    return [x + distance * y / length, y - distance * x / length]


def _around(centre: Vector, distance: float, turn: float) -> list[float]:
    """The point at `distance` from `centre` in the direction of `turn`, from 0 to 1."""
    angle = 2 * math.pi * turn
    return [centre[0] + distance * math.cos(angle), centre[1] + distance * math.sin(angle)]
