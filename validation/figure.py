"""Predicted against measured, drawn as SVG: no library needed, colours follow the page's theme."""

import math
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from calculator.units import format_bytes
from validation.compare import Comparison

SIZE: Final = 560
MARGIN: Final = 84
MOST_TICKS: Final = 6  # a label is up to 60 wide
COLOURS: Final = {
    "bert": "#4e79a7",
    "t5": "#f28e2b",
    "gpt2": "#59a14f",
    "gptj": "#b07aa1",
    "dalle": "#e15759",
}
# a colour for each of dozens of types could not be told apart
OTHERS: Final = "other types"
OTHER_COLOUR: Final = "#76b7b2"


def draw(comparisons: Sequence[Comparison]) -> str:
    """A scatter plot on logarithmic axes; on the diagonal the calculator is exact."""
    sizes = [size for item in comparisons for size in (item.predicted, item.measured)]
    low, high = math.floor(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
    scale = _Scale(low, high)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" role="img"',
        'font-family="sans-serif" font-size="12" fill="currentColor">',
        "<title>Peak memory of a training step, predicted against measured</title>",
        *_axes(scale),
        *(_point(scale, item) for item in comparisons),
        *_legend({item.family for item in comparisons}),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Scale:
    """From bytes to places on the paper."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def x(self, size: float) -> float:
        """Distance from the left."""
        share = (math.log2(size) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (SIZE - 1.5 * MARGIN), 1)

    def y(self, size: float) -> float:
        """Distance from the top."""
        return round(SIZE - self.x(size), 1)


def _ticks_apart(scale: _Scale) -> int:
    """Powers of two between two labels: an even number, so that labels don't touch."""
    return max(1, math.ceil((scale.high - scale.low) / MOST_TICKS / 2)) * 2


def _axes(scale: _Scale) -> Iterator[str]:
    first, last = 2**scale.low, 2**scale.high
    line = f'x1="{scale.x(first)}" y1="{scale.y(first)}" x2="{scale.x(last)}" y2="{scale.y(last)}"'
    yield f'<line {line} stroke="currentColor" stroke-opacity=".4"/>'
    for power in range(scale.low, scale.high + 1, _ticks_apart(scale)):
        size = 2**power
        label = escape(format_bytes(size))
        yield f'<text x="{scale.x(size)}" y="{SIZE - 64}" text-anchor="middle">{label}</text>'
        yield f'<text x="{MARGIN - 6}" y="{scale.y(size) + 4}" text-anchor="end">{label}</text>'
    middle = SIZE / 2
    yield f'<text x="{middle}" y="{SIZE - 36}" text-anchor="middle">measured</text>'
    turned = f'transform="rotate(-90 14 {middle})"'
    yield f'<text x="14" y="{middle}" text-anchor="middle" {turned}>predicted</text>'


def _point(scale: _Scale, item: Comparison) -> str:
    place = f'cx="{scale.x(item.measured)}" cy="{scale.y(item.predicted)}"'
    title = escape(f"{item.configuration.command}: {100 * item.error:+.3f} %")
    fill = f'fill="{COLOURS.get(item.family, OTHER_COLOUR)}" fill-opacity=".6"'
    return f'<circle {place} r="3.5" {fill}><title>{title}</title></circle>'


def _legend(families: set[str]) -> Iterator[str]:
    named = [name for name in COLOURS if name in families]
    others = [OTHERS] if families - COLOURS.keys() else []
    for number, family in enumerate([*named, *others]):
        y = MARGIN + 18 * number
        colour = COLOURS.get(family, OTHER_COLOUR)
        yield f'<circle cx="{MARGIN + 16}" cy="{y - 4}" r="5" fill="{colour}"/>'
        yield f'<text x="{MARGIN + 28}" y="{y}">{family}</text>'
