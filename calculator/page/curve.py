"""The curve of a step as the page draws it: shares of a width and a height, and words."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby, pairwise
from math import ceil, log2
from typing import Any, Final

from calculator.catalog import Gpu
from calculator.curve import Point, StepCurve, curve
from calculator.page.states import Params, read_state
from calculator.peaks.curve import Held
from calculator.peaks.names import Run
from calculator.report import Phase
from calculator.units import format_bytes, format_count

MOST_POINTS: Final = 700
# each phase takes this share of the width at least, so that its name can be read
NARROWEST: Final = 0.11
# the GPU's memory is in the picture where it is at most so many times the peak
IN_SIGHT: Final = 1.3
# the picture is higher than its curve by this share
ABOVE: Final = 1.06
MOST_LINES: Final = 4
DIGITS: Final = 5
BITS: Final = {1: "8-bit", 2: "16-bit", 4: "32-bit", 8: "64-bit"}


def draw_curve(params: Params, reach: int = 0, most: int = MOST_POINTS) -> dict[str, Any]:
    """A state's curve, of about `most` points.

    The picture reaches at least `reach` bytes, so that several can share a scale.

    `points` are in order: each begins at its `x` and ends where the next one begins; its `tops` are
    the heights of the parts, each on top of the one before. Words are numbered in `names` and
    `kinds`.
    """
    architecture, plan, gpu = read_state(params)
    found = curve(architecture, plan, most)
    peak = found.peak.memory.total
    highest = max(peak, reach)
    scale = ABOVE * max(highest, gpu.memory if gpu.memory <= IN_SIGHT * highest else 0)
    phases = _phases(found)
    names: dict[str, int] = {}
    kinds: dict[str, int] = {}
    return {
        "operations": format_count(found.operations),
        "is_thinned": len(found.points) < found.operations,
        "phases": phases,
        "lines": _lines(scale),
        "limit": _limit(gpu, scale),
        "peak": found.points.index(found.peak),
        "points": [
            _point(point, x, scale, names, kinds)
            for point, x in zip(found.points, _places(found, phases), strict=True)
        ],
        "names": list(names),
        "kinds": list(kinds),
        "summary": _summary(found),
    }


def _point(
    point: Point, x: float, scale: float, names: dict[str, int], kinds: dict[str, int]
) -> dict[str, Any]:
    parts = list(point.memory.as_json().values())
    tops = [round(sum(parts[: end + 1]) / scale, DIGITS) for end in range(len(parts))]
    return {
        "x": x,
        "tops": tops,
        "total": format_bytes(point.memory.total),
        "parts": [format_bytes(size) for size in parts],
        "name": names.setdefault(f"{point.phase.label}: {_words(point)}", len(names)),
        "layer": point.layer,
        "largest": [
            [kinds.setdefault(_kind(held), len(kinds)), held.count, format_bytes(held.bytes)]
            for held in point.largest
        ],
    }


def _words(point: Point) -> str:
    """The operation and its place; in the backward phase, the direction is left out."""
    return point.words.removesuffix(f", {Run.BACKWARD}" if point.phase is Phase.BACKWARD else "")


def _kind(held: Held) -> str:
    kind = held.kind
    bits = BITS.get(kind.width, f"{8 * kind.width}-bit")
    return f"{kind.name} ({bits}, {kind.size})"


def _phases(found: StepCurve) -> list[dict[str, Any]]:
    """Start and end of each stretch of the curve, as fractions of the width."""
    firsts = [first for _, _, first in _stretches(found)]
    counts = [*(after - first for first, after in pairwise(firsts)), 1]
    widths = [max(NARROWEST, count / found.operations) for count in counts]
    whole, start, placed = sum(widths), 0.0, []
    for (name, label, _), width in zip(_stretches(found), widths, strict=True):
        end = start + width / whole
        placed.append(
            {"name": name, "label": label}
            | {"start": round(start, DIGITS), "end": round(end, DIGITS)}
        )
        start = end
    return placed


def _stretches(found: StepCurve) -> list[tuple[str, str, int]]:
    """Each phase with its label and first operation; all together where they take turns."""
    firsts = _firsts(found)
    if len({phase for phase, _ in firsts}) < len(firsts):
        label = "Micro-batches, forward and backward"
        (first, _), (last, after) = firsts[0], firsts[-1]
        return [(first.value, label, 0), (last.value, last.label, after)]
    return [(phase.value, phase.label, first) for phase, first in firsts]


def _firsts(found: StepCurve) -> list[tuple[Phase, int]]:
    """The number of each phase's first operation."""
    groups = groupby(found.points, lambda point: point.phase)
    return [(phase, next(points).number) for phase, points in groups]


def _places(found: StepCurve, phases: Sequence[dict[str, Any]]) -> list[float]:
    """Start of each point, as a fraction of the width."""
    firsts = [first for _, _, first in _stretches(found)]
    ends = [*firsts[1:], found.operations]
    places = []
    for point in found.points:
        at = bisect_right(firsts, point.number) - 1
        start, stop = phases[at]["start"], phases[at]["end"]
        share = (point.number - firsts[at]) / (ends[at] - firsts[at])
        places.append(round(start + share * (stop - start), DIGITS))
    return places


def _lines(scale: float) -> list[dict[str, Any]]:
    """Heights to draw a line at: a power of two of bytes and its multiples."""
    step = 2 ** ceil(log2(scale / (MOST_LINES + 1)))
    heights = range(step, int(scale) + 1, step)
    return [{"y": round(size / scale, DIGITS), "text": format_bytes(size)} for size in heights]


def _limit(gpu: Gpu, scale: float) -> dict[str, Any] | None:
    if gpu.memory > scale:
        return None
    text = f"{gpu.title}: {format_bytes(gpu.memory)}"
    return {"y": round(gpu.memory / scale, DIGITS), "text": text}


def _summary(found: StepCurve) -> list[str]:
    """The highest of each phase in a sentence, for whoever does not see the picture."""
    sentences = []
    for phase in dict.fromkeys(point.phase for point in found.points):
        points = [point for point in found.points if point.phase is phase]
        top = max(points, key=lambda point: point.memory.total)
        begins, highest = (format_bytes(p.memory.total) for p in (points[0], top))
        is_peak = " This is the peak." if top is found.peak else ""
        sentences.append(
            f"{phase.label}: begins at {begins}, is highest at {highest} ({_words(top)}).{is_peak}"
        )
    return sentences
