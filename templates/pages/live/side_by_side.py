"""Two recorded rehearsals side by side, with averaging and with local steps."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from calculator.units import format_traffic
from templates.pieces.loss_curve import draw
from templates.pieces.recorded_run import LIVE, Run, entries

PER: Final = 4096  # sequences for which traffic is given: a global step of the 2021 run
NEWEST: Final = 10  # steps whose mean loss is shown


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A comparison of two runs.

    Attributes:
        curve: losses over sequences, the second one dashed.
        rows: of a table.
        less: times that local steps exchange less for as many sequences.
    """

    curve: str
    rows: list[list[str]]
    less: float


def read(live: Path = LIVE) -> SideBySide | None:
    """The first listed run that averages beside the first with local steps; None if one lacks."""
    runs = [Run(entry["name"], entry["note"], live) for entry in entries(live)]
    averaging = next((run for run in runs if not _has_rounds(run)), None)
    local = next((run for run in runs if _has_rounds(run)), None)
    if averaging is None or local is None:
        return None
    pair = (averaging, local)
    until = min(sum(step["samples"] for step in run.steps) for run in pair)
    sent, received = ([_traffic(run, way) for run in pair] for way in ("sent", "received"))
    rows = [
        ["Parameters", *(f"{run.card['parameters']:,}" for run in pair)],
        _row("Sequences in an exchange, usually", pair, lambda run: f"{_usual(run):,.0f}"),
        _row(f"Loss after {until:,} sequences", pair, lambda run: f"{_loss(run, until):.3f}"),
        [f"Sent by all for {PER:,} sequences", *map(format_traffic, sent)],
        [f"Received by all for {PER:,} sequences", *map(format_traffic, received)],
    ]
    curve = draw(*(_points(run, until) for run in pair), place="after {:,} sequences")
    less = (sent[0] + received[0]) / (sent[1] + received[1])
    return SideBySide(curve, rows, less)


def _has_rounds(run: Run) -> bool:
    return bool(run.card["schedule"].get("round_seconds"))


def _row(label: str, pair: tuple[Run, Run], cell: Callable[[Run], str]) -> list[str]:
    return [label, *(cell(run) for run in pair)]


def _usual(run: Run) -> float:
    return median(float(step["samples"]) for step in run.steps)


def _points(run: Run, until: int) -> list[tuple[int, Any]]:
    """Sequences so far, and the loss of each step, up to so many sequences."""
    so_far = accumulate(step["samples"] for step in run.steps)
    pairs = zip(so_far, run.steps, strict=True)
    return [(count, step["loss"]) for count, step in pairs if count <= until]


def _loss(run: Run, until: int) -> float:
    """The mean loss of the steps just before so many sequences."""
    known = [loss for _, loss in _points(run, until) if loss is not None]
    return fmean(known[-NEWEST:])


def _traffic(run: Run, way: str) -> float:
    """Bytes that all volunteers together move in a usual step, for as many sequences."""
    steps = [step for step in run.steps if step["samples"]]
    return PER * median(float(step[f"bytes_{way}"] / step["samples"]) for step in steps)
