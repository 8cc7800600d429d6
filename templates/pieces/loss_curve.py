"""Losses over steps as SVG, for pages that show them before a script runs, or without one."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

WIDTH: Final = 960
HEIGHT: Final = 320
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 10, 34
MOST_POINTS: Final = 600
TICKS: Final = 5
DASHES: Final = ("", "7 5", "2 4")  # lines differ even without color

Point = tuple[int, float | None]


def draw(*lines: Sequence[Point], place: str = "at step {:,}") -> str:
    """Draw lines and their axes, without steps that have no loss; empty if no step has one.

    Args:
        lines: steps in ascending order and their losses; a second is dashed, a third dotted.
        place: words for a step, or for something else that the horizontal axis counts.
    """
    known = [
        [(step, loss) for step, loss in points if loss is not None] for points in lines if points
    ]
    known = [points for points in known if points]
    if not known:
        return ""
    frame = _Frame(sorted(point for points in known for point in points))
    title = "; ".join(_in_words(points, place) for points in known)
    return "\n".join(
        [
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
            *_axes(frame),
            *(_line(number, points, frame) for number, points in enumerate(known)),
            "</svg>",
        ]
    )


def _in_words(points: Sequence[tuple[int, float]], place: str) -> str:
    (first, high), (last, low) = points[0], points[-1]
    return f"Loss from {high:.3f} {place.format(first)} to {low:.3f} {place.format(last)}"


def _line(number: int, points: Sequence[tuple[int, float]], frame: "_Frame") -> str:
    path = " ".join(f"{frame.x(step)},{frame.y(loss)}" for step, loss in _thinned(points))
    kind = "line" if number == 0 else f"line series-{number + 1}"
    dashes = f' stroke-dasharray="{DASHES[number]}"' if number else ""
    return f'<polyline class="{kind}"{dashes} points="{path}"/>'


class _Frame:
    """Maps steps and losses to coordinates."""

    def __init__(self, points: Sequence[tuple[int, float]]) -> None:
        losses = [loss for _, loss in points]
        self.steps = (points[0][0], max(points[-1][0], points[0][0] + 1))
        self.losses = (min(losses), max(max(losses), min(losses) + 1e-9))

    def x(self, step: float) -> float:
        """Distance from the left."""
        share = (step - self.steps[0]) / (self.steps[1] - self.steps[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, loss: float) -> float:
        """Distance from the top."""
        share = (loss - self.losses[0]) / (self.losses[1] - self.losses[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _axes(frame: _Frame) -> Iterator[str]:
    for loss in _ticks(*frame.losses):
        y = frame.y(loss)
        yield f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{loss:g}</text>'
    yield f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    for step in _ticks(*frame.steps):
        x = frame.x(step)
        yield f'<text x="{x}" y="{HEIGHT - 12}" text-anchor="middle">{round(step):,}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two, about as many as `TICKS`.

    >>> _ticks(1, 300)
    [100, 200, 300]
    """
    rough = (high - low) / TICKS
    unit = 10 ** math.floor(math.log10(rough))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(count * step, 12) for count in range(first, last + 1)]


def _thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """At most `MOST_POINTS` points, evenly spaced, and the last one."""
    every = math.ceil(len(points) / MOST_POINTS)
    kept = points[::every]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]
