"""A benchmark's recorded figures, as the pages show them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.console import ROOT

RECORDED = ROOT / "benchmarks" / "recorded.json"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One part of benchmarks/recorded.json.

    Attributes:
        name: of the part. title: of its table. command: measures it again.
        figures: as benchmarks/figures.py writes them: name, value, unit, target, at_least.
        machine: facts about it, and the date.
    """

    name: str
    title: str
    command: str
    figures: list[dict[str, Any]]
    machine: Mapping[str, Any]

    @property
    def date(self) -> str:
        """The day of measuring."""
        return str(self.machine["date"])[:10]

    @property
    def values(self) -> dict[str, float]:
        """Values by the figures' names, in the unit that the file gives for each."""
        return {figure["name"]: float(figure["value"]) for figure in self.figures}

    def loss(self, way: str) -> str:
        """The mean loss of a way to train, and the range over its seeds."""
        low, high = self.values[f"{way}: lowest"], self.values[f"{way}: highest"]
        return f"{self.values[f'{way}: loss, mean']:.2f} ({low:.2f}\N{EN DASH}{high:.2f})"

    @property
    def source(self) -> str:
        """The file, its date and the command, in Markdown."""
        return f"`benchmarks/{RECORDED.name}`, dated {self.date}; `{self.command}`"


def read_benchmark(part: str, path: Path = RECORDED) -> Benchmark | None:
    """A recorded part; None if it has not been recorded."""
    parts = json.loads(path.read_text("utf-8"))["parts"] if path.exists() else {}
    return Benchmark(part, **parts[part]) if part in parts else None
