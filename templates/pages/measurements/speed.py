"""Measured speed of the pages, beside the targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from templates.pieces.benchmark import RECORDED, Benchmark, read_benchmark

PARTS = ("start", "slider", "live", "lighthouse", "weight")
NONE = "\N{EN DASH}"
UNKNOWN = "We have not found the cause yet."

_COMPILING = (
    "Stock Pyodide spends about half of its start in the browser's compiler, which translates "
    "Python's 9.6 MB of WebAssembly. A page can save the other half, which is Python's own work, "
    "but not this one."
)
_RETURNING = (
    "Browsers keep the machine code that they compile from WebAssembly, but one visit later than "
    "the files themselves, and they still load and check it. The rest is Pyodide's own script."
)
_PHONE = (
    "Lighthouse simulates a phone with a slow connection, whose processor is four times slower "
    "than this machine's. On the calculator's page, Python starts within that time."
)
_FILES = (
    "Scripts, styles, the font, a run's pictures and each part of its live data are files of their "
    "own, and the service worker asks for the page once more."
)
# Causes of what can miss its target, by the figure's name without the page's.
REASONS = {
    "processor time, stock = 1": _COMPILING,
    "time, stock = 1": _COMPILING,
    "second visit: processor time, stock = 1": _RETURNING,
    "second visit: time, stock = 1": _RETURNING,
    "calculator's page: gzip": (
        "Python's WebAssembly alone is 3.5 MB, and its script 0.26 MB. We use both as Pyodide "
        "publishes them."
    ),
    "95th percentile": (
        "Each movement counts a whole training step and draws every figure of the page again. One "
        "movement in twenty also meets the browser's own work on the same processor."
    ),
    "longest task": (
        "The script of the site's theme runs on every page, as one task, in which the page is laid "
        "out several times. On the live page, so does the chart library, when a chart is in view."
    ),
    "performance": _PHONE,
    "requests": _FILES,
    "requests of the page that makes the most": _FILES,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, or the same figure of several pages.

    Attributes:
        cells: name, result, target and outcome.
        missed: True if the target is missed, also by only one of the pages.
        reason: the cause of a miss.
    """

    cells: list[str]
    missed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """A recorded part: its rows, and in words the command, the day and the machine."""

    title: str
    source: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Speed:
    """All measurements.

    Attributes:
        met: targets that are met. targets: all of them.
    """

    measurements: list[Measurement]
    met: int
    targets: int

    @property
    def missed(self) -> list[Row]:
        """Rows with a missed target."""
        return [row for part in self.measurements for row in part.rows if row.missed]

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The reasons for missed targets, each with the names of its rows."""
        found: dict[str, list[str]] = {}
        for row in self.missed:
            found.setdefault(row.reason, []).append(row.cells[0])
        return found


def read(path: Path = RECORDED) -> Speed | None:
    """The measurements; None if there are none."""
    found = [part for name in PARTS if (part := read_benchmark(name, path))]
    aimed = [figure for part in found for figure in part.figures if _aims(figure)]
    measurements = [Measurement(one.title, _source(one), _rows(one.figures)) for one in found]
    met = sum(_is_met(figure) for figure in aimed)
    return Speed(measurements, met, len(aimed)) if found else None


def _source(part: Benchmark) -> str:
    machine = part.machine
    where = f"{machine['processor']}, {machine['cores']} cores, Chromium {machine['chromium']}"
    return f"`{part.command}`, {part.date}, {where}, load {machine['load']} at the start"


def _aims(figure: dict[str, Any]) -> bool:
    return figure["target"] is not None


def _is_met(figure: dict[str, Any]) -> bool:
    value, target = figure["value"], figure["target"]
    return bool(value >= target if figure["at_least"] else value <= target)


def _rows(figures: Sequence[dict[str, Any]]) -> list[Row]:
    """Figures with a target; of a measurement without targets, all of them.

    Figures of several pages, such as "home: requests", make one row if they share a target.
    """
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for figure in [figure for figure in figures if _aims(figure)] or figures:
        _, kind = _page_and_kind(figure)
        key = (kind, figure["unit"], figure["target"], figure["at_least"])
        groups.setdefault(key, []).append(figure)
    return [_row(group) for group in groups.values()]


def _page_and_kind(figure: dict[str, Any]) -> tuple[str, str]:
    page, _, kind = figure["name"].rpartition(": ")
    return page, kind


def _row(group: list[dict[str, Any]]) -> Row:
    first, *others = group
    pages = {_page_and_kind(figure)[0]: figure for figure in group}
    kind = _page_and_kind(first)[1]
    name = kind if others else first["name"]
    results = [_quantity(figure["value"], figure["unit"]) for figure in group]
    if others:
        results = [f"{page} {result}" for page, result in zip(pages, results, strict=True)]
    missing = [page for page, figure in pages.items() if _aims(figure) and not _is_met(figure)]
    reason = REASONS.get(first["name"], REASONS.get(kind, UNKNOWN))
    outcome = _outcome(first, missing if others else [], bool(missing))
    return Row([name, ", ".join(results), _target(first), outcome], bool(missing), reason)


def _target(figure: dict[str, Any]) -> str:
    if not _aims(figure):
        return NONE
    limit = _quantity(figure["target"], figure["unit"])
    return f"{limit} or {'more' if figure['at_least'] else 'less'}"


def _outcome(figure: dict[str, Any], pages: list[str], missed: bool) -> str:
    if not _aims(figure):
        return NONE
    if not missed:
        return "met"
    return f"missed by {', '.join(pages)}" if pages else "missed"


def _quantity(value: float, unit: str) -> str:
    """A figure as a reader wants it: sizes in millions of bytes, the rest to three digits.

    >>> _quantity(6703123, "bytes"), _quantity(0.2034, ""), _quantity(98.0, "")
    ('6.70 MB', '0.203', '98')
    """
    if unit == "bytes":
        return f"{value / 1e6:.2f} MB"
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{number} {unit}".strip()
