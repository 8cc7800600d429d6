"""Local steps behind routers beside reachable volunteers, from benchmarks/behind-routers.json."""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.console import ROOT

PATH = ROOT / "benchmarks" / "behind-routers.json"


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one kind: the loss, and the updates in a round, each with mean and range."""

    loss: str
    updates: str


@dataclass(frozen=True, slots=True)
class BehindRouters:
    """The measurement: runs of both kinds, the sequences after which it compares them, its day."""

    closed: Runs
    open: Runs
    sequences: str
    date: str


def measured(path: Path = PATH) -> BehindRouters | None:
    """The newest measurement, None where there is none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = content["tables"]
    values = {figure["name"]: float(figure["value"]) for figure in table["figures"]}

    def range_of(kind: str, name: str) -> str:
        mean, low, high = (values[f"{kind}: {name}, {w}"] for w in ("mean", "lowest", "highest"))
        return f"{mean:.2f} ({low:.2f}\N{EN DASH}{high:.2f})"

    closed, reachable = (
        Runs(range_of(kind, "loss"), range_of(kind, "updates in a round"))
        for kind in ("all behind routers", "all reachable")
    )
    sequences = f"{values['sequences after which the loss is compared']:,.0f}"
    return BehindRouters(closed, reachable, sequences, content["machine"]["date"][:10])
