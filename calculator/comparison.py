"""The demonstration of the page 'Security': the same vectors averaged in three ways.

Gradients of two numbers are points in a plane. What honest and bad volunteers send is averaged by
mean, median and CenteredClip, and each result is compared with the mean of the honest alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calculator.aggregation import (
    Aggregation,
    Clipping,
    Vector,
    centered_clip_path,
    coordinate_median,
    mean,
)
from calculator.attacks import Attack, attack
from calculator.errors import InputError, unknown_name

# Made up: seven volunteers whose gradients agree but for the noise of their samples.
HONEST: Final[tuple[tuple[float, float], ...]] = (
    (3.2, 1.1),
    (2.3, 2.2),
    (4.1, 1.7),
    (3.0, 2.9),
    (2.4, 0.8),
    (3.9, 0.7),
    (3.6, 2.3),
)
DEFAULT_ATTACK: Final = Attack.PULL
DEFAULT_BAD_COUNT: Final = 2
DEFAULT_CLIPPING: Final = Clipping(radius=1.5, iterations=8)
MOST_BAD: Final = 10
LARGEST_COORDINATE: Final = 1e6

# The part of the plane that is drawn: so far from zero to each side.
HALF_WIDTH: Final = 8.0
HALF_HEIGHT: Final = 5.0
MARGIN: Final = 0.96  # what lies outside is marked so far out, in the direction where it is


@dataclass(frozen=True, slots=True)
class Result:
    """What one way of averaging gives, beside the honest mean.

    Attributes:
        error: distance from the honest mean, in the vectors' unit.
        angle: between the two, in degrees; None where one of them is zero.
        path: the centres of CenteredClip from the start on; else only the result.
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
    """

    honest: tuple[tuple[float, ...], ...]
    bad: tuple[tuple[float, ...], ...]
    clipping: Clipping
    honest_mean: tuple[float, ...]
    spread: float
    results: tuple[Result, ...]


def compare(honest: Sequence[Vector], bad: Sequence[Vector], clipping: Clipping) -> Comparison:
    """Average in all three ways; CenteredClip starts from zero, as in a first step.

    Raises:
        InputError: for no honest vector, unequal lengths, or numbers that are not finite.
    """
    aim = mean(honest)
    vectors = [*honest, *bad]
    paths = {
        Aggregation.MEAN: [mean(vectors)],
        Aggregation.MEDIAN: [coordinate_median(vectors)],
        Aggregation.CENTERED_CLIP: centered_clip_path(vectors, clipping),
    }
    return Comparison(
        tuple(map(tuple, honest)),
        tuple(map(tuple, bad)),
        clipping,
        tuple(aim),
        math.sqrt(sum(math.dist(vector, aim) ** 2 for vector in honest) / len(honest)),
        tuple(
            Result(kind, tuple(map(tuple, path)), math.dist(path[-1], aim), _angle(path[-1], aim))
            for kind, path in paths.items()
        ),
    )


def _angle(one: Vector, other: Vector) -> float | None:
    """Degrees between two vectors of two numbers."""
    if not any(one) or not any(other):
        return None
    turn = math.atan2(one[1], one[0]) - math.atan2(other[1], other[0])
    return abs(math.degrees(math.remainder(turn, 2 * math.pi)))


def answer(params: Mapping[str, object]) -> dict[str, Any]:
    """What the page shows for one state of the demonstration.

    Args:
        params: `attack`, a name of `Attack` or "hand" for the points of `bad`, a list of [x, y];
            `bad_count`; `radius`; `iterations`. What is absent has its default.

    Raises:
        InputError: for a value out of its range.
    """
    clipping = Clipping(
        _number(params, "radius", DEFAULT_CLIPPING.radius),
        _whole(params, "iterations", DEFAULT_CLIPPING.iterations),
    )
    comparison = compare(HONEST, _bad(params, clipping), clipping)
    return {
        "attack": str(params.get("attack") or DEFAULT_ATTACK),
        "honest": [_place(vector) for vector in comparison.honest],
        "bad": [_place(vector) for vector in comparison.bad],
        "honest_mean": _place(comparison.honest_mean),
        "results": {result.aggregation.value: _drawn(result) for result in comparison.results},
        "radius": clipping.radius,
        "iterations": clipping.iterations,
        "spread": comparison.spread,
        "figures": figures(comparison),
    }


def _bad(params: Mapping[str, object], clipping: Clipping) -> list[list[float]]:
    count = _whole(params, "bad_count", DEFAULT_BAD_COUNT)
    if not 0 <= count <= MOST_BAD:
        raise InputError("bad_count", count, f"must be a whole number from 0 to {MOST_BAD}")
    name = str(params.get("attack") or DEFAULT_ATTACK)
    if name == "hand":
        return _placed(params.get("bad"), count)
    if name not in [*Attack]:
        raise unknown_name("attack", name, [*Attack, "hand"])
    return attack(Attack(name), HONEST, count, clipping.radius)


def _placed(given: object, count: int) -> list[list[float]]:
    """The points that were put by hand, as many as are wanted: new ones pull."""
    rule = f"must be a list of pairs of numbers up to {LARGEST_COORDINATE:,.0f}"
    if not isinstance(given, list):
        raise InputError("bad", given, rule)
    points = []
    for point in given[:count]:
        if not isinstance(point, list) or len(point) != 2:
            raise InputError("bad", point, rule)
        numbers = [_finite("bad", number) for number in point]
        if max(map(abs, numbers)) > LARGEST_COORDINATE:
            raise InputError("bad", point, rule)
        points.append(numbers)
    return points + attack(DEFAULT_ATTACK, HONEST, count, 1.0)[len(points) :]


def _number(params: Mapping[str, object], field: str, default: float) -> float:
    value = params.get(field)
    return default if value in (None, "") else _finite(field, value)


def _whole(params: Mapping[str, object], field: str, default: int) -> int:
    number = _number(params, field, default)
    if number != int(number):
        raise InputError(field, number, "must be a whole number")
    return int(number)


def _finite(field: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(field, value, "must be a finite number")
    return number


def _place(vector: Sequence[float]) -> dict[str, Any]:
    """A vector and where it is drawn, in per cent of the picture from its upper left corner."""
    reach = max(abs(vector[0]) / HALF_WIDTH, abs(vector[1]) / HALF_HEIGHT)
    outside = reach > MARGIN
    factor = MARGIN / reach if outside else 1.0
    left = 50 * (1 + factor * vector[0] / HALF_WIDTH)
    top = 50 * (1 - factor * vector[1] / HALF_HEIGHT)
    return {"x": vector[0], "y": vector[1], "left": left, "top": top, "outside": outside}


def _drawn(result: Result) -> dict[str, Any]:
    path = [_place(vector) for vector in result.path]
    return {"error": result.error, "angle": result.angle, "path": path, **path[-1]}


def figures(comparison: Comparison) -> dict[str, str]:
    """The texts that the page shows, by name."""
    texts = {
        "honest": f"{len(comparison.honest)}",
        "bad": f"{len(comparison.bad)}",
        "radius": f"{comparison.clipping.radius:g}",
        "iterations": f"{comparison.clipping.iterations}",
        "spread": f"{comparison.spread:.2f}",
        "summary": summary(comparison),
    }
    for result in comparison.results:
        name = result.aggregation.value
        texts[f"{name}.vector"] = ", ".join(_signed(number) for number in result.vector)
        texts[f"{name}.error"] = _short(result.error)
        texts[f"{name}.angle"] = "none" if result.angle is None else f"{result.angle:.0f}°"
        texts[f"{name}.verdict"] = verdict(result, comparison.spread)
    return texts


def verdict(result: Result, spread: float) -> str:
    """How usable a result is: as near as one honest volunteer, off, or against them."""
    if result.error <= spread:
        return "close"
    return "backwards" if (result.angle or 0.0) > 90 else "off"


def summary(comparison: Comparison) -> str:
    """One sentence for who cannot see the picture."""
    mean_, median, clip = (_short(result.error) for result in comparison.results)
    bad, honest = len(comparison.bad), len(comparison.honest)
    return (
        f"{bad} bad of {bad + honest} volunteers. Distance from the honest mean: mean {mean_}, "
        f"median {median}, CenteredClip {clip}."
    )


def _signed(number: float) -> str:
    return _short(number).replace("-", "\N{MINUS SIGN}")


def _short(number: float) -> str:
    rounded = round(number, 2) + 0.0  # no minus before zero
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.2f}"
