"""Training in a tab: ways compared, a whole training, a real run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from templates.pieces.benchmark import RECORDED, read_benchmark


@dataclass(frozen=True, slots=True)
class Measured:
    """A table of figures, and where they come from.

    Attributes:
        rows: a name and a figure with its unit.
        machine: in words.
        source: the file, its date and the command.
    """

    title: str
    rows: list[list[str]]
    machine: str
    source: str


def read(name: str, path: Path = RECORDED) -> Measured | None:
    """The part NAME; None if it is not recorded."""
    found = read_benchmark(name, path)
    if found is None:
        return None
    machine, figures = found.machine, found.figures
    rows = [[name, in_words(one)] for name, one in zip(names(figures), figures, strict=True)]
    words = (
        f"{machine['cores']} cores of an {machine['processor']}, which other work used, too "
        f"(load {machine['load']:.0f} at the start)"
    )
    return Measured(found.title, rows, words, found.source)


def names(figures: Sequence[dict[str, Any]]) -> list[str]:
    """The figures' names; one that is indented belongs to the last that is not."""
    found, above = [], ""
    for name in (figure["name"] for figure in figures):
        above = above if name.startswith(" ") else name
        full = name if name == above else f"{above}: {name.strip()}"
        found.append(full[0].upper() + full[1:])
    return found


def in_words(figure: dict[str, Any]) -> str:
    """A figure with its unit: three digits are enough."""
    value, unit = figure["value"], figure["unit"]
    return (f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}").strip()
