"""Training in a tab: ways compared, a whole training, a real run; from files of benchmarks/."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.console import ROOT

FOLDER = ROOT / "benchmarks"


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


def read(name: str, folder: Path = FOLDER) -> Measured | None:
    """The measurement NAME; None if its file does not exist."""
    path = folder / f"{name.replace('_', '-')}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = content["tables"]
    machine = content["machine"]
    rows = [[name, in_words(one)] for name, one in zip(names(table), table["figures"], strict=True)]
    words = (
        f"{machine['cores']} cores of an {machine['processor']}, which other work used, too "
        f"(load {machine['load']:.0f} at the start)"
    )
    source = (
        f"`benchmarks/{path.name}`, dated {machine['date'][:10]}; `python3 build.py bench {name}`"
    )
    return Measured(table["title"], rows, words, source)


def names(table: dict[str, Any]) -> list[str]:
    """The figures' names; one that is indented belongs to the last that is not."""
    found, above = [], ""
    for name in (figure["name"] for figure in table["figures"]):
        above = above if name.startswith(" ") else name
        full = name if name == above else f"{above}: {name.strip()}"
        found.append(full[0].upper() + full[1:])
    return found


def in_words(figure: dict[str, Any]) -> str:
    """A figure with its unit: three digits are enough."""
    value, unit = figure["value"], figure["unit"]
    return (f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}").strip()
