"""Errors of groups of figures, drawn as SVG: a strip for each group, a point for each figure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 400
LEFT, RIGHT = 12, 388
TOP, STRIP, ROWS = 34, 52, 3
STEP: Final = 0.2  # between two labels of the axis
MOST: Final = 0.6  # a larger error is an arrow at the right end, with its value
MANY: Final = 50  # more points than a reader tells apart are one path, without their words

Point = tuple[str, float]  # words, and a relative error


def draw(groups: Mapping[str, Sequence[Point]], inner: float, outer: float) -> str:
    """One strip per group under its name, with bands of the two targets around no error."""
    errors = [error for points in groups.values() for _, error in points]
    scale = _Scale(min(errors), max(errors))
    height = TOP + STRIP * len(groups) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        'class="errors" font-size="12">',
        "<title>Error of the calculator's peak for each published figure, by source</title>",
        *_bands(scale, height, inner, outer),
        *_axis(scale, height),
        *(
            line
            for number, (name, points) in enumerate(groups.items())
            for line in _strip(scale, TOP + STRIP * number, name, points)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Scale:
    """From relative errors to places on the paper."""

    def __init__(self, low: float, high: float) -> None:
        high = min(high, MOST - STEP / 2)
        self.ticks = range(min(-1, int(low / STEP - 1)), max(1, int(high / STEP + 1)) + 1)
        self.low, self.high = self.ticks[0] * STEP, self.ticks[-1] * STEP

    def x(self, error: float) -> float:
        """Distance from the left."""
        share = (error - self.low) / (self.high - self.low)
        return round(LEFT + share * (RIGHT - LEFT), 1)


def _bands(scale: _Scale, height: int, inner: float, outer: float) -> Iterator[str]:
    for size in (outer, inner):
        x, end = scale.x(-size), scale.x(size)
        place = f'x="{x}" y="{TOP - 6}" width="{end - x:.1f}" height="{height - TOP}"'
        yield f'<rect class="errors__band" {place}/>'


def _axis(scale: _Scale, height: int) -> Iterator[str]:
    for tick in scale.ticks:
        x = scale.x(tick * STEP)
        kind = "errors__zero" if tick == 0 else "errors__line"
        yield f'<line class="{kind}" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height - 6}"/>'
        words = f"{100 * tick * STEP:+.0f}\N{NO-BREAK SPACE}%" if tick else "0"
        anchor = {scale.ticks[0]: "start", scale.ticks[-1]: "end"}.get(tick, "middle")
        yield f'<text x="{x}" y="{TOP - 14}" text-anchor="{anchor}">{words}</text>'


def _strip(scale: _Scale, y: int, name: str, points: Sequence[Point]) -> Iterator[str]:
    yield f'<text class="errors__name" x="{LEFT}" y="{y + 9}">{escape(name)}</text>'
    dots = []
    for number, (words, error) in enumerate(points):
        x, middle = scale.x(min(error, MOST)), y + 21 + 8 * (number % ROWS)
        title = f"<title>{escape(f'{words}: {100 * error:+.1f} %')}</title>"
        if error > MOST:
            arrow = f'd="M{x - 8} {middle - 4}l8 4l-8 4z"'
            yield f'<path class="errors__beyond" {arrow}>{title}</path>'
        elif len(points) > MANY:
            dots.append(f"M{x} {middle}h0")
        else:
            yield f'<circle cx="{x}" cy="{middle}" r="3.5">{title}</circle>'
    if dots:
        yield f'<path class="errors__dots" d="{"".join(dict.fromkeys(dots))}"/>'
    if beyond := [f"{100 * error:+.0f}\N{NO-BREAK SPACE}%" for _, error in points if error > MOST]:
        place = f'x="{RIGHT - 12}" y="{y + 29}" text-anchor="end"'
        yield f"<text {place}>{', '.join(beyond)}</text>"
