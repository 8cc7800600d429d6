"""Outcome of a rehearsal in which everything went wrong, from benchmarks/chaos.json."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from templates.pieces import loss_curve
from tools.console import ROOT

PATH = ROOT / "benchmarks" / "chaos.json"


@dataclass(frozen=True, slots=True)
class Chaos:
    """Figures written by `python -m benchmarks.chaos`.

    Attributes:
        figures: the contents of the file.
        rows: a label, then the figure of the calm run and of the run in chaos.
        curve: the losses of both runs as SVG.
    """

    figures: dict[str, Any]
    rows: list[list[str]]
    curve: str


def read(path: Path = PATH) -> Chaos | None:
    """The figures; None if the file does not exist."""
    if not path.exists():
        return None
    figures = json.loads(path.read_text("utf-8"))
    least = min(figures["sequences_calm"], figures["sequences"])
    rows = [
        [words, form.format(figures[f"{key}_calm"]), form.format(figures[key])]
        for words, key, form in (
            ("Steps", "steps", "{:,}"),
            (f"Loss, mean of 10 steps to step {figures['compared_at_step']:,}", "loss", "{:.3f}"),
            ("Sequences counted", "sequences", "{:,}"),
            (
                f"Loss, mean of 10 steps to sequence {least:,}",
                "loss_by_sequences",
                "{:.3f}",
            ),
            ("Pictures that match their captions, at the end", "pictures_right", "{:.1%}"),
        )
    ]
    return Chaos(figures, rows, loss_curve.draw(figures["curve_calm"], figures["curve"]))
