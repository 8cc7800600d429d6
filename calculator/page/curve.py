"""The curve of a step as the page draws it: shares of a width and a height, and words."""

from bisect import bisect_right
from itertools import accumulate, groupby, pairwise
from math import ceil, floor, log2, log10
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
# marks on the time axis, at most; the last stands where its words are still in the picture
MOST_TIMES: Final = 5
LAST_TIME: Final = 0.9
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
    `kinds`. The width is time, with marks at `times`; where the clock has no answer, it counts
    operations.
    """
    architecture, plan, gpu = read_state(params)
    found = curve(architecture, plan, most)
    peak = found.peak.memory.total
    highest = max(peak, reach)
    scale = ABOVE * max(highest, gpu.memory if gpu.memory <= IN_SIGHT * highest else 0)
    axis = _Axis(found)
    names: dict[str, int] = {}
    kinds: dict[str, int] = {}
    return {
        "note": _note(found),
        "phases": axis.phases,
        "times": _times(found, axis),
        "lines": _lines(scale),
        "limit": _limit(gpu, scale),
        "peak": found.points.index(found.peak),
        "points": [
            _point(point, axis.place(_along(point)), scale, names, kinds)
            | {"time": _after(point.seconds, found)}
            for point in found.points
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


def _note(found: StepCurve) -> str:
    """The length of the curve, and a word on what it leaves out."""
    words = f"{format_count(found.operations)} operations"
    if found.seconds is not None:
        words += f" in {_clocked(found.seconds, found.seconds)}"
    if found.micro_batches > 1:
        words += f": one of {format_count(found.micro_batches)} micro-batches, and the update"
    if len(found.points) < found.operations:
        words += ". The curve shows only the highest and the lowest of neighboring operations"
    return f"{words}."


def _clocked(seconds: float, whole: float) -> str:
    """A time, to three digits of a whole one.

    >>> _clocked(0.0271, 0.312), _clocked(0.5, 1.0), _clocked(20, 20)
    ('27 ms', '0.50 s', '20.0 s')
    """
    times, unit = _unit(whole)
    return f"{times * seconds:.{max(0, 2 - floor(log10(times * whole)))}f} {unit}"


def _unit(whole: float) -> tuple[int, str]:
    """The unit that suits a time: so many are a second, and its name."""
    return (1, "s") if whole >= 1 else (1000, "ms")


def _after(seconds: float | None, found: StepCurve) -> str:
    """When an operation starts, in words; empty where the clock has no answer."""
    if seconds is None or found.seconds is None:
        return ""
    return f"after {_clocked(seconds, found.seconds)}"


def _along(point: Point) -> float:
    """The place of a point on its axis: seconds, or the operations before."""
    return point.number if point.seconds is None else point.seconds


class _Axis:
    """The width, in stretches: each has its share of the whole, but the shortest have more."""

    def __init__(self, found: StepCurve) -> None:
        stretches = _stretches(found)
        end = found.operations if found.seconds is None else found.seconds
        self.edges = [*(_along(first) for _, _, first in stretches), end]
        widths = [max(NARROWEST, (after - first) / end) for first, after in pairwise(self.edges)]
        ends = list(accumulate(widths, initial=0.0))
        self.places = [each / ends[-1] for each in ends]
        self.phases = [
            {"name": name, "label": label}
            | {"start": round(start, DIGITS), "end": round(stop, DIGITS)}
            for (name, label, _), (start, stop) in zip(
                stretches, pairwise(self.places), strict=True
            )
        ]

    def place(self, along: float) -> float:
        """A place on the axis as a fraction of the width."""
        at = min(bisect_right(self.edges, along), len(self.edges) - 1) - 1
        first, after = self.edges[at : at + 2]
        start, stop = self.places[at : at + 2]
        share = (along - first) / (after - first) if after > first else 0.0
        return round(start + share * (stop - start), DIGITS)


def _times(found: StepCurve, axis: _Axis) -> list[dict[str, Any]]:
    """Marks on the time axis: round numbers of seconds, and none where there are no seconds."""
    if found.seconds is None:
        return []
    times, unit = _unit(found.seconds)
    tenfold = 10 ** floor(log10(found.seconds))
    steps = (tenfold * times for times in (0.1, 0.2, 0.5, 1, 2, 5))
    step = next(each for each in steps if found.seconds / each < MOST_TIMES)
    marks = [step * number for number in range(ceil(found.seconds / step))]
    places = [(mark, axis.place(mark)) for mark in marks]
    return [{"x": x, "text": f"{times * mark:.6g} {unit}"} for mark, x in places if x < LAST_TIME]


def _stretches(found: StepCurve) -> list[tuple[str, str, Point]]:
    """Each phase with its label and first point; all together where they take turns."""
    groups = groupby(found.points, lambda point: point.phase)
    firsts = [(phase, next(points)) for phase, points in groups]
    if len({phase for phase, _ in firsts}) < len(firsts):
        label = "Micro-batches, forward and backward"
        (first, begin), (last, after) = firsts[0], firsts[-1]
        return [(first.value, label, begin), (last.value, last.label, after)]
    return [(phase.value, phase.label, first) for phase, first in firsts]


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
        when = f" {_after(points[0].seconds, found)}".rstrip()
        is_peak = " This is the peak." if top is found.peak else ""
        where = f"is highest at {highest} ({_words(top)})"
        sentences.append(f"{phase.label}: begins{when} at {begins}, {where}.{is_peak}")
    return sentences
