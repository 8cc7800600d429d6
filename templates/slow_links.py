"""Measured exchanges over slow lines, from benchmarks/slow-links.json, as rows of a table."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "slow-links.json"
BITS = (8, 16, 32)


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Seconds of one exchange on one line, by bits of a number; None where not measured."""

    line: str
    seconds: tuple[float | None, ...]

    @property
    def cells(self) -> list[object]:
        """The row of a table, its heading first."""
        return [self.line, *(f"{s:.1f} s" if s is not None else "" for s in self.seconds)]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Seconds of each step in which a peer does not compute, on one line."""

    line: str
    plain: float
    overlapped: float


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """What was measured.

    Attributes:
        parameters: of the gradients that were exchanged, and peers: in the group.
        compression: bytes that were sent at 32 bits over those at 8.
        faster: the same of the seconds on the slowest line.
    """

    parameters: int
    peers: int
    exchanges: list[Exchanges]
    compression: float
    faster: float
    overlaps: list[Overlap]
    date: str


def read(path: Path = PATH) -> SlowLinks | None:
    """What was measured among peers that reach each other; None as long as there is too little."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    rows = [row for row in content["rows"] if row["measured"] == "exchange"]
    rows = [row for row in rows if row["reachable"] == row["peers"] == 2]
    by_line: dict[str, dict[int, Any]] = {}
    smallest = min((row["parameters"] for row in rows), default=0)
    for row in rows:
        if row["parameters"] == smallest:
            by_line.setdefault(_line(row), {})[row["bits"]] = row
    whole = {line: found for line, found in by_line.items() if len(found) == len(BITS)}
    if not whole:
        return None
    slowest = min(whole.values(), key=lambda found: _rate(found[8]))
    return SlowLinks(
        parameters=smallest,
        peers=2,
        exchanges=[
            Exchanges(line, tuple(found[bits]["seconds"] for bits in BITS))
            for line, found in whole.items()
        ],
        compression=slowest[32]["bytes_sent"] / slowest[8]["bytes_sent"],
        faster=slowest[32]["seconds"] / slowest[8]["seconds"],
        overlaps=_overlaps(content["rows"]),
        date=content["machine"]["date"][:10],
    )


def _overlaps(rows: list[dict[str, Any]]) -> list[Overlap]:
    lost: dict[str, dict[bool, float]] = {}
    for row in rows:
        if row["measured"] == "step":
            words = f"{_line(row)}, {row['bits']} bits"
            lost.setdefault(words, {})[row["overlap"]] = row["seconds"]
    return [
        Overlap(line, found[False], found[True]) for line, found in lost.items() if len(found) == 2
    ]


def _rate(row: dict[str, Any]) -> tuple[float, float]:
    return (row["mbit_per_second"], row["loss_percent"])


def _line(row: dict[str, Any]) -> str:
    words = f"{row['mbit_per_second']:g} Mbit/s, {row['round_trip_ms']:g} ms round trip"
    if not row["loss_percent"]:
        return words
    control = "" if row["congestion_control"] == "cubic" else f", {row['congestion_control']}"
    return f"{words}, {row['loss_percent']:g} % lost{control}"
