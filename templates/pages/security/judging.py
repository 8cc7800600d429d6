"""Effects of bad peers in runs with local steps, from benchmarks/judging.json, as table rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from templates.pages.security.defence import in_nats
from templates.pieces.benchmark import read_benchmark
from tools.console import ROOT

PATH = ROOT / "benchmarks" / "judging.json"
HONEST: Final = "all honest"
ATTACKS: Final = {
    HONEST: "None: all nine are honest",
    "times 10": "What they learned, times 10",
    "sign turned": "What they learned, with the sign flipped",
    "times -10": "Both: times \N{MINUS SIGN}10",
    "garbage": "The same values at random places",
    "replay": "Another volunteer's file of the last round, signed again",
    "nothing": "Zeros, for the usual number of sequences",
}


@dataclass(frozen=True, slots=True)
class Judging:
    """The measurement: its title, a row for each attack, and its date."""

    title: str
    rows: list[list[str]]
    date: str


def read(path: Path = PATH) -> Judging | None:
    """The measurement; None if the file does not exist."""
    found = read_benchmark(path)
    if found is None:
        return None
    values = found.values
    rows = []
    for attack, words in ATTACKS.items():
        bad = values[f"{attack}, judged: bad updates taken"]
        honest = values[f"{attack}, judged: honest updates taken"]
        rows.append(
            [
                words,
                in_nats(values[f"{attack}, not judged: held-out loss"]),
                in_nats(values[f"{attack}, judged: held-out loss"]),
                "\N{EN DASH}" if attack == HONEST else f"{1 - bad:.0%}",
                f"{1 - honest:.1%}",
            ]
        )
    return Judging(found.title, rows, found.date)
