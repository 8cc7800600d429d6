"""Outcomes of rehearsals in which everything went wrong, from benchmarks/chaos.json."""

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
        figures: of one exchange, as the file has them.
        rows: a label, then the figure of the calm run and of the run in chaos.
        curve: the losses of both runs as SVG.
    """

    figures: dict[str, Any]
    rows: list[list[str]]
    curve: str


def read(exchange: str = "averaging", path: Path = PATH) -> Chaos | None:
    """The figures of an exchange, `averaging` or `local`; None if nobody recorded them."""
    recorded = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if exchange not in recorded:
        return None
    figures = recorded[exchange]
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
