"""The demonstration of the page 'Security': gradients with two elements are points in a plane.

The gradients of honest and bad volunteers are averaged in three ways, and the page draws the
results.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from calculator.errors import InputError, unknown_name
from calculator.swarm.aggregation import Clipping
from calculator.swarm.attacks import Attack, attack
from calculator.swarm.comparison import Comparison, Result, Start, compare

# Made up: seven volunteers whose gradients agree except for the noise of their sequences.
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
SMALLEST_RADIUS: Final = 1e-6

# The part of the plane that is drawn, as distances from zero to each side.
HALF_WIDTH: Final = 8.0
HALF_HEIGHT: Final = 5.0
MARGIN: Final = 0.96  # points outside are marked this far out, in their own direction

# A result is close to the honest mean within half of the distance at which one honest volunteer
# usually is, and fair within all of it. CenteredClip has arrived when its last leg is this short.
CLOSE: Final = 0.5
ARRIVED: Final = 0.05  # of the radius

# All sentences about a state; until Python has started, the page's script fills in the same ones.
SENTENCES: Final = {
    "summary": (
        "{bad} bad of {all} volunteers. Distance from the honest mean: mean {mean}, "
        "median {median}, CenteredClip {clip}."
    ),
    "half": (
        "As many volunteers are bad as honest: no average can tell whom to believe, and the bad "
        "ones decide the result."
    ),
    "most": (
        "Most volunteers are bad: no average can tell whom to believe, and the bad ones decide the "
        "result."
    ),
    "none": "No one is bad, so the mean is exact.",
    "close": "The bad gradients hardly move the mean.",
    "fair": "The bad gradients pull the mean aside.",
    "off": "The bad gradients spoil the mean.",
    "backwards": "The mean points backward and would undo what the model has learned.",
    "both": "The median and CenteredClip stay near the honest mean.",
    "median": "The median stays near the honest mean, CenteredClip does not.",
    "clip": "CenteredClip stays near the honest mean, the median does not.",
    "neither": "Neither the median nor CenteredClip is near the honest mean.",
    "moving": "CenteredClip is still on its way: it needs more iterations.",
    "inside": "No bad gradient is clipped, because none is farther away than the radius.",
}


def answer(params: Mapping[str, object]) -> dict[str, Any]:
    """The drawing and texts for one state of the demonstration.

    Args:
        params: `attack`, a name of `Attack` or "hand" for the points of `bad`, each an object
            with x and y, or with left and top as percentages of the picture; `bad_count`;
            `radius`; `iterations`; `start`, a name of `Start`. Absent ones have their defaults.

    Raises:
        InputError: if a value is out of range.
    """
    clipping = Clipping(_radius(params), _whole(params, "iterations", DEFAULT_CLIPPING.iterations))
    start = params.get("start") or Start.ZERO
    if not isinstance(start, str) or start not in [*Start]:
        raise unknown_name("start", start, Start)
    comparison = compare(HONEST, _bad(params, clipping), clipping, Start(start))
    return {
        "attack": str(params.get("attack") or DEFAULT_ATTACK),
        "start": start,
        "honest": [_place(vector) for vector in comparison.honest],
        "bad": [_place(vector) for vector in comparison.bad],
        "honest_mean": _place(comparison.honest_mean),
        "results": {result.aggregation.value: _drawn(result) for result in comparison.results},
        "radius": clipping.radius,
        "iterations": clipping.iterations,
        "reach": 100 * clipping.radius / math.hypot(HALF_WIDTH, HALF_HEIGHT) / math.sqrt(2),
        "figures": figures(comparison),
    }


def _bad(params: Mapping[str, object], clipping: Clipping) -> list[list[float]]:
    count = _whole(params, "bad_count", DEFAULT_BAD_COUNT)
    if not 0 <= count <= MOST_BAD:
        raise InputError("bad_count", count, f"must be a whole number from 0 to {MOST_BAD}")
    name = params.get("attack") or DEFAULT_ATTACK
    if name == "hand":
        return _placed(params.get("bad"), count)
    if not isinstance(name, str) or name not in [*Attack]:
        raise unknown_name("attack", name, [*Attack, "hand"])
    return attack(Attack(name), HONEST, count, clipping.radius)


def _placed(given: object, count: int) -> list[list[float]]:
    """The given number of points: those placed by hand, then new ones that pull."""
    if not isinstance(given, list):
        raise InputError("bad", given, "must be a list of points")
    points = [_point(point) for point in given[:count]]
    return points + attack(DEFAULT_ATTACK, HONEST, count, 1.0)[len(points) :]


def _point(given: object) -> list[float]:
    match given:
        case {"x": given_x, "y": given_y}:  # from an earlier answer
            x, y = _finite("bad", given_x), _finite("bad", given_y)
        case {"left": left, "top": top}:
            x = (_finite("bad", left) / 50 - 1) * HALF_WIDTH
            y = (1 - _finite("bad", top) / 50) * HALF_HEIGHT
        case _:
            raise InputError("bad", given, "must have x and y, or left and top")
    if max(abs(x), abs(y)) > LARGEST_COORDINATE:
        raise InputError("bad", given, f"must not be beyond {LARGEST_COORDINATE:,.0f}")
    return [x, y]


def _radius(params: Mapping[str, object]) -> float:
    radius = _number(params, "radius", DEFAULT_CLIPPING.radius)
    if not SMALLEST_RADIUS <= radius <= LARGEST_COORDINATE:
        rule = f"must be a number from {SMALLEST_RADIUS:g} to {LARGEST_COORDINATE:,.0f}"
        raise InputError("radius", radius, rule)
    return radius


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
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(field, value, "must be a finite number")
    return number


def _place(vector: Sequence[float]) -> dict[str, Any]:
    """A vector and its place, as percentages of the picture from the upper left corner."""
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
    """The texts shown on the page, by name."""
    texts = {
        "honest": f"{len(comparison.honest)}",
        "bad": f"{len(comparison.bad)}",
        "radius": f"{comparison.clipping.radius:g}",
        "iterations": f"{comparison.clipping.iterations}",
        "spread": f"{comparison.spread:.2f}",
        "middle_distance": _short(comparison.middle_distance),
        "finding": finding(comparison),
        "summary": f"{summary(comparison)} {finding(comparison)}",
    }
    for result in comparison.results:
        name = result.aggregation.value
        texts[f"{name}.vector"] = ", ".join(_signed(number) for number in result.vector)
        texts[f"{name}.error"] = _short(result.error)
        texts[f"{name}.angle"] = "none" if result.angle is None else f"{result.angle:.0f}°"
        texts[f"{name}.verdict"] = verdict(result, comparison.spread)
    return texts


def verdict(result: Result, spread: float) -> str:
    """One word for a result: close, fair (no worse than one honest volunteer), off or backwards."""
    if result.error <= CLOSE * spread:
        return "close"
    if result.error <= spread:
        return "fair"
    return "backwards" if (result.angle or 0.0) > 90 else "off"


def summary(comparison: Comparison) -> str:
    """The distances in one sentence, for anyone who can't see the picture."""
    mean_, median, clip = (_short(result.error) for result in comparison.results)
    bad, honest = len(comparison.bad), len(comparison.honest)
    return SENTENCES["summary"].format(
        bad=bad, all=bad + honest, mean=mean_, median=median, clip=clip
    )


def finding(comparison: Comparison) -> str:
    """The lesson of this state, in two or three sentences."""
    return " ".join(SENTENCES[name] for name in _lessons(comparison))


def _lessons(comparison: Comparison) -> Iterator[str]:
    bad, honest = len(comparison.bad), len(comparison.honest)
    if bad >= honest:
        yield "half" if bad == honest else "most"
    else:
        yield verdict(comparison.results[0], comparison.spread) if bad else "none"
        yield _near(*(result.error <= comparison.spread for result in comparison.results[1:]))
    *_, before, center = comparison.results[-1].path
    radius = comparison.clipping.radius
    if math.dist(before, center) > ARRIVED * radius:
        yield "moving"
    elif bad and all(math.dist(one, center) <= radius for one in comparison.bad):
        yield "inside"


def _near(median: bool, clip: bool) -> str:
    """The sentence that names those of the two that are near the honest mean."""
    if median:
        return "both" if clip else "median"
    return "clip" if clip else "neither"


def _signed(number: float) -> str:
    return _short(number).replace("-", "\N{MINUS SIGN}")


def _short(number: float) -> str:
    rounded = round(number, 2) + 0.0  # no minus sign before zero
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.2f}"
