"""Rounds of local steps over slow lines, from benchmarks/sparse-links.json, and as planned."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from calculator.planner.communicate import Connection, Rhythm, Way, exchange_seconds
from calculator.planner.forecast import forecast
from calculator.planner.presets import PRESETS
from calculator.units import format_seconds, format_traffic
from tools.console import ROOT

PATH: Final = ROOT / "benchmarks" / "sparse-links.json"
GOAL: Final = 0.95  # of the time computing


@dataclass(frozen=True, slots=True)
class Round:
    """A measured round of local steps.

    Attributes:
        peers: volunteers, all alike. mbit: of each, up and down.
        payload: bytes of an update.
        sent, received: bytes on one volunteer's line.
        seconds: of a round without its computing.
        uploading, downloading: of these, for files that travel.
        is_simulated: put together from the parts of other rounds.
    """

    peers: int
    mbit: float
    round_trip: float
    parameters: int
    payload: int
    sent: int
    received: int
    seconds: float
    uploading: float
    downloading: float
    is_simulated: bool = False

    @property
    def moving(self) -> float:
        """Seconds for files that travel."""
        return self.uploading + self.downloading

    @property
    def connection(self) -> Connection:
        """Each volunteer's."""
        return Connection(self.mbit * 1e6, self.mbit * 1e6, self.round_trip)

    @property
    def planned(self) -> float:
        """The planner's seconds for the files."""
        return exchange_seconds(self.payload, [self.connection] * self.peers, Way.ROUND)

    @property
    def line(self) -> str:
        """The connection in words."""
        words = f"{self.mbit:g} Mbit/s, {1000 * self.round_trip:g} ms"
        return words + ("<small>simulated</small>" if self.is_simulated else "")

    @property
    def shortest(self) -> float:
        """Seconds of computing in a round from which the goal is met."""
        return self.seconds * GOAL / (1 - GOAL)

    @property
    def share(self) -> float:
        """Share of the time computing, with one round for each global batch of the 2021 run."""
        return Rhythm(batch_seconds(self.peers), self.seconds).computing_share

    @property
    def cells(self) -> list[str]:
        """The row of a table on traffic and time."""
        return [
            f"{self.peers} volunteers",
            self.line,
            format_traffic(self.sent),
            format_traffic(self.received),
            f"{self.seconds:.1f} s",
            f"{self.share:.1%}",
            format_seconds(self.shortest),
        ]

    @property
    def planned_cells(self) -> list[str]:
        """The row of a table that compares with the planner."""
        return [
            self.line,
            str(self.peers),
            f"{self.parameters / 1e6:.1f} million",
            f"{self.planned:.1f} s",
            f"{self.moving:.1f} s",
            f"{self.moving - self.planned:+.1f} s",
            f"{self.seconds:.1f} s",
        ]


@dataclass(frozen=True, slots=True)
class SparseLinks:
    """All measured rounds, fewer volunteers first."""

    rounds: list[Round]
    date: str

    def find(self, peers: int, mbit: float) -> Round | None:
        """The round of so many volunteers at a rate."""
        found = (one for one in self.rounds if (one.peers, one.mbit) == (peers, mbit))
        return next(found, None)


def read(path: Path = PATH) -> SparseLinks | None:
    """The measurements; None if there are none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    rounds = sorted(map(_round, content["rows"]), key=lambda one: (one.peers, one.mbit))
    return SparseLinks(rounds, content["machine"]["date"][:10])


def batch_seconds(peers: int) -> float:
    """Seconds in which so many volunteers of the 2021 run compute a global batch."""
    preset = PRESETS["2021"]
    run = replace(preset.run, volunteers=peers)
    return forecast(preset.model, run).rhythm.computing_seconds


def _round(row: dict[str, Any]) -> Round:
    parts = row["parts"]
    return Round(
        row["peers"],
        row["mbit_per_second"],
        row["round_trip_ms"] / 1000,
        row["parameters"],
        row["payload_bytes"],
        row["line_sent"],
        row["line_received"],
        row["seconds"],
        parts["handing_in"],
        parts["downloading"],
    )


def simulate(processed: Round, moved: Round) -> Round:
    """A round as large as one that was measured, at the rate of a smaller one.

    Files travel as fast as in the smaller round, the others' one after the other.
    """
    downloading = moved.downloading * (processed.peers - 1) / (moved.peers - 1)
    return replace(
        processed,
        mbit=moved.mbit,
        seconds=processed.seconds - processed.moving + moved.uploading + downloading,
        uploading=moved.uploading,
        downloading=downloading,
        is_simulated=True,
    )
