"""A real gradient before and after compression, from benchmarks/gradient.json, as pictures."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.console import ROOT

PATH: Final = ROOT / "benchmarks" / "gradient.json"
WIDTH, LEFT, RIGHT = 360, 44, 6
TOP, PANEL, GAP, BOTTOM = 18, 62, 30, 36
LIMIT: Final = 3  # standard deviations, where the outermost levels of 8 bits are
WIDE: Final = (-6.0, 6.0)  # as benchmarks/gradient.py counts them
ZOOM: Final = tuple((level - 0.5) * 6 / 256 for level in (16, 24))
WIDE_TICKS: Final = (-6, -3, 0, 3, 6)
ZOOM_TICKS: Final = (0.4, 0.45, 0.5, 0.55)
COUNTS: Final = (1, 100, 10_000)


@dataclass(frozen=True, slots=True)
class Sent:
    """The gradient in one format.

    Attributes:
        bits: of each element of the largest tensor.
        megabytes: of the whole gradient.
        error: of the whole gradient, relative to its length. tensor_error: of the largest tensor.
        values: different values in that tensor.
        from_beyond: part of its squared error that lies beyond the outermost levels.
        wide, zoom: elements in each bin.
    """

    bits: int
    megabytes: float
    error: float
    tensor_error: float
    values: int
    from_beyond: float
    wide: tuple[int, ...]
    zoom: tuple[int, ...]


Row = tuple[Sent, Sequence[float]]
Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Gradient:
    """A measured gradient and what each format makes of it."""

    content: dict[str, Any]
    formats: tuple[Sent, ...]

    @property
    def whole(self) -> str:
        """All of the largest tensor's values, on a scale of logarithms."""
        rows = [(sent, [math.log10(1 + count) for count in sent.wide]) for sent in self.formats]
        marks = [(math.log10(1 + count), f"{count:,}") for count in COUNTS]
        words = "three histograms of the values of a gradient, in 32, 16 and 8 bits"
        ticks = [(number, f"{number:g}".replace("-", "\N{MINUS SIGN}")) for number in WIDE_TICKS]
        return _draw(rows, WIDE, ticks, marks, f"{words}; in 8 bits it ends in two spikes")

    @property
    def part(self) -> str:
        """A small part of the values."""
        rows = [(sent, [float(count) for count in sent.zoom]) for sent in self.formats]
        words = "the same three histograms, magnified: in 8 bits each level is a spike"
        ticks = [(number, f"{number:g}") for number in ZOOM_TICKS]
        return _draw(rows, ZOOM, ticks, [], words)


def read(path: Path = PATH) -> Gradient | None:
    """The measurement; None if there is none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    return Gradient(
        content,
        tuple(
            Sent(
                row["bits"],
                row["bytes"] / 1e6,
                row["error"],
                row["tensor_error"],
                row["values"],
                row["from_beyond"],
                tuple(row["wide"]),
                tuple(row["zoom"]),
            )
            for row in content["formats"]
        ),
    )


def percent(share: float) -> str:
    """A share with two significant digits.

    >>> percent(0.0234), percent(0.000456), percent(1.32)
    ('2.3 %', '0.046 %', '132 %')
    """
    if not share:
        return "0 %"
    digits = max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{100 * share:.{digits}f} %"


def _draw(
    rows: Sequence[Row],
    between: tuple[float, ...],
    ticks: Sequence[Tick],
    marks: Sequence[Tick],
    words: str,
) -> str:
    """One panel for each format, one below the other, with a common axis."""
    bottom = TOP + len(rows) * (PANEL + GAP) - GAP
    low, high = between

    def place(number: float) -> float:
        return round(LEFT + (number - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    size = f'viewBox="0 0 {WIDTH} {bottom + BOTTOM}"'
    lines = [f'<svg class="plot" {size} role="img" aria-label="{words}">']
    most = max(max(heights) for _, heights in rows)
    for number, (sent, heights) in enumerate(rows):
        top = TOP + number * (PANEL + GAP)
        lines += [*_grid(top, marks, most), *_panel(top, sent, heights, most)]
        if low < -LIMIT:
            edges = "".join(f"M{place(edge)} {top}V{top + PANEL}" for edge in (-LIMIT, LIMIT))
            lines.append(f'<path class="gradient__limit" d="{edges}"/>')
    names = [(place(value), bottom + 15, text) for value, text in ticks]
    names.append(((LEFT + WIDTH - RIGHT) / 2, bottom + 31, "standard deviations from the mean"))
    lines += [f'<text x="{x}" y="{y}" text-anchor="middle">{text}</text>' for x, y, text in names]
    return "\n".join([*lines, "</svg>"])


def _grid(top: float, marks: Sequence[Tick], most: float) -> Iterator[str]:
    for height, text in marks:
        if height > most:
            continue
        y = round(top + PANEL * (1 - height / most), 1)
        yield f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{text}</text>'


def _panel(top: float, sent: Sent, heights: Sequence[float], most: float) -> Iterator[str]:
    foot, wide = top + PANEL, (WIDTH - LEFT - RIGHT) / len(heights)
    error = f"error {percent(sent.tensor_error)}" if sent.tensor_error else "as computed"
    yield f'<text class="label" x="{LEFT}" y="{top - 6}">{sent.bits} bits: {error}</text>'
    tops = "".join(f"V{foot - PANEL * height / most:.1f}h{wide:.2f}" for height in heights)
    yield f'<path class="gradient__bars" d="M{LEFT} {foot}{tops}V{foot}Z"/>'
    yield f'<path class="axis" d="M{LEFT} {foot}H{WIDTH - RIGHT}"/>'
