"""Measured exchanges over slow connections, from benchmarks/slow-links.json, as table rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calculator.swarm.communication import all_reduce_bytes, transfer_seconds
from tools.console import ROOT

PATH = ROOT / "benchmarks" / "slow-links.json"
BITS = (8, 16, 32)


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Seconds of one exchange by bits per element; None if not measured.

    Attributes:
        line: each peer's connection, in words. peers: in the group, in words.
        parameters: averaged. full_rate: seconds at the connection's full rate, with 8 bits.
    """

    line: str
    peers: str
    parameters: int
    full_rate: float
    seconds: tuple[float | None, ...]

    @property
    def cells(self) -> list[object]:
        """The row of a table, its heading first."""
        numbers = f"{self.parameters / 1e6:.1f} million"
        times = [f"{s:.1f} s" if s is not None else "\N{EN DASH}" for s in self.seconds]
        return [self.line, self.peers, numbers, f"{self.full_rate:.1f} s", *times]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Seconds of each step in which a peer does not compute, on one connection."""

    line: str
    plain: float
    overlapped: float

    @property
    def cells(self) -> list[object]:
        """The row of a table, its heading first."""
        return [self.line, f"{self.plain:.1f} s", f"{self.overlapped:.1f} s"]


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """Measured exchanges and overlaps.

    Attributes:
        compression: bytes sent at 32 bits over bytes sent at 8.
        has_losses: True if one of the connections loses packets.
        with_bbr: seconds of an exchange over a lossy connection with cubic and with BBR.
    """

    exchanges: list[Exchanges]
    compression: float
    has_losses: bool
    with_bbr: tuple[float, float] | None
    overlaps: list[Overlap]
    date: str


def read(path: Path = PATH) -> SlowLinks | None:
    """The measurements; None if no connection was measured at all three widths."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    rows = sorted(content["rows"], key=_order)
    groups: dict[tuple[str, str, int], dict[int, Any]] = {}
    for row in rows:
        if row["measured"] == "exchange":
            groups.setdefault((_line(row), _peers(row), row["parameters"]), {})[row["bits"]] = row
    whole = [found for found in groups.values() if len(found) == len(BITS)]
    if not whole:
        return None
    slowest = max(whole, key=lambda found: float(found[32]["seconds"]))
    return SlowLinks(
        exchanges=[_exchanges(key, found) for key, found in groups.items() if 8 in found],
        compression=slowest[32]["bytes_sent"] / slowest[8]["bytes_sent"],
        has_losses=any(row["loss_percent"] for row in rows),
        with_bbr=_with_bbr(rows),
        overlaps=_overlaps(rows),
        date=content["machine"]["date"][:10],
    )


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Simple lines first: no loss, few peers, small models, few bits, fast before slow."""
    control = row["congestion_control"] != "cubic"
    if row["measured"] == "line":
        return (row["loss_percent"], control)
    hidden = row["peers"] - row["reachable"]
    size = (row["peers"], hidden, row["parameters"])
    return (row["loss_percent"], control, *size, -row["mbit_per_second"], row["bits"])


def _exchanges(key: tuple[str, str, int], found: dict[int, Any]) -> Exchanges:
    row = found[8]
    sent = all_reduce_bytes(row["expected_bytes"], row["peers"])
    seconds = tuple(found[bits]["seconds"] if bits in found else None for bits in BITS)
    return Exchanges(*key, transfer_seconds(sent, row["mbit_per_second"] * 1e6), seconds)


def _with_bbr(rows: Sequence[dict[str, Any]]) -> tuple[float, float] | None:
    """Seconds at 8 bits on the first lossy connection that was measured with both controls."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["measured"] == "exchange" and row["loss_percent"] and row["bits"] == 8:
            line = _line(row | {"congestion_control": "cubic"})
            found.setdefault(line, {})[row["congestion_control"]] = row["seconds"]
    both = [seconds for seconds in found.values() if {"cubic", "bbr"} <= seconds.keys()]
    return (both[0]["cubic"], both[0]["bbr"]) if both else None


def _overlaps(rows: Sequence[dict[str, Any]]) -> list[Overlap]:
    lost: dict[str, dict[bool, float]] = {}
    for row in rows:
        if row["measured"] == "step":
            words = f"{_line(row)}, {row['bits']} bits"
            lost.setdefault(words, {})[row["overlap"]] = row["seconds"]
    return [
        Overlap(line, found[False], found[True]) for line, found in lost.items() if len(found) == 2
    ]


def _peers(row: dict[str, Any]) -> str:
    hidden = row["peers"] - row["reachable"]
    return f"{row['peers']}" + (f", {hidden} behind a firewall" if hidden else "")


def _line(row: dict[str, Any]) -> str:
    words = f"{row['mbit_per_second']:g} Mbit/s, {row['round_trip_ms']:g} ms round trip"
    if not row["loss_percent"]:
        return words
    control = "" if row["congestion_control"] == "cubic" else f", {row['congestion_control']}"
    return f"{words}, {row['loss_percent']:g} % lost{control}"
