"""Data for 'Plan a run': the form's options, the first plan, and measured exchanges."""

import json
from dataclasses import dataclass
from typing import Any

from calculator.catalog import groups
from calculator.page.run import OTHER, presets
from calculator.planner.communicate import Connection, Way, exchange_seconds
from calculator.planner.run import Run
from templates.pages.calculator.context import ask
from templates.pages.measurements import sparse_links
from templates.pages.measurements.slow_links import PATH


@dataclass(frozen=True, slots=True)
class Group:
    """Options that stand together in the form."""

    title: str
    fields: tuple[str, ...]
    folded: bool = False


GROUPS = (
    Group(
        "The run",
        (
            "parameters",
            "layers",
            "width",
            "billion_tokens",
            "sequence_length",
            "sharing_groups",
        ),
    ),
    Group(
        "The volunteers",
        (
            "volunteers",
            "gpu",
            "teraflops",
            "more_gpus",
            "hours",
            "gpus_each",
            "utilization",
        ),
    ),
    Group("Their connections", ("up", "down", "round_trip")),
    Group(
        "The exchange",
        (
            "target_batch",
            "compression",
            "rank",
            "kept",
            "block",
            "value_bits",
            "local_steps",
            "overlap",
            "way",
        ),
        folded=True,
    ),
    Group(
        "Energy, money, failures",
        (
            "recomputation",
            "watts",
            "overhead",
            "kilograms_per_kwh",
            "dollars_per_hour",
            "failures",
        ),
        folded=True,
    ),
)
SLIDERS = {
    "billion_tokens": (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
    "volunteers": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000),
    "up": (5, 10, 20, 50, 100, 200, 500, 1000),
    "down": (5, 10, 20, 50, 100, 200, 500, 1000),
}
# each speed-up's name, and what it does, in the paper's order
STAIRS = {
    "plain": ("None of them", "an exchange in 32 bits every 512 sequences"),
    "target_batch": ("Large batches", "fewer exchanges"),
    "compression": ("Compression", "fewer bits per parameter"),
    "sharing_groups": ("Shared layers", "fewer parameters; makes another model"),
    "local_steps": ("Local steps", "several steps per exchange; changes training"),
    "overlap": ("Overlap", "compute during exchanges"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured exchange beside the planner's seconds."""

    connection: str
    peers: int
    parameters: int
    bits: int
    predicted: float
    seconds: float

    @property
    def cells(self) -> list[str]:
        """The row of a table."""
        return [
            self.connection,
            str(self.peers),
            f"{self.parameters / 1e6:.1f} million",
            str(self.bits),
            f"{self.predicted:.1f} s",
            f"{self.seconds:.1f} s",
            f"{self.seconds - self.predicted:+.1f} s",
        ]


def measured() -> list[Measured]:
    """Exchanges on connections that lost nothing, among peers that all averaged."""
    rows = json.loads(PATH.read_text("utf-8"))["rows"]
    found = [_beside(row) for row in rows if _is_plain(row)]
    return sorted(found, key=lambda row: (row.parameters, row.peers, row.connection, row.bits))


def _is_plain(row: dict[str, Any]) -> bool:
    plain: bool = (
        row["measured"] == "exchange"
        and row["loss_percent"] == 0
        and row["peers"] == row["reachable"]
    )
    return plain


def _beside(row: dict[str, Any]) -> Measured:
    rate = row["mbit_per_second"]
    peers = [Connection(rate * 1e6, rate * 1e6, row["round_trip_ms"] / 1000)] * row["peers"]
    return Measured(
        f"{rate:g} Mbit/s, {row['round_trip_ms']:g} ms round trip",
        row["peers"],
        row["parameters"],
        row["bits"],
        exchange_seconds(row["expected_bytes"], peers, Way.ALL_REDUCE),
        row["seconds"],
    )


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    value = ask("plan")
    rows = measured()
    longer = [row.seconds / row.predicted for row in rows]
    return {
        "value": value,
        "figures": value["figures"],
        "options": Run.options(),
        "shown": {name: _shown(name, text) for name, text in value["values"].items()},
        "groups": GROUPS,
        "sliders": SLIDERS,
        "models": groups(),
        "other": OTHER,
        "models_own": set[str](),
        "stairs": STAIRS,
        "drawn": {stair["field"]: stair for stair in value["stairs"]},
        "presets": presets(),
        "measured": rows,
        "longer": (min(longer), max(longer)),
        "rounds": sparse_links.read(),
    }


def _shown(name: str, text: str) -> object:
    """A value as the form's markup takes it: a slider's as a number, a flag's as one."""
    if name in SLIDERS:
        return int(text) if text.isdigit() else float(text)
    return text == "true" if text in ("true", "false") else text
