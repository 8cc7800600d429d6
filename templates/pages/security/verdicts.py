"""Effects of attacks and lying judges in runs with local steps, from benchmarks/verdicts.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from templates.pages.security.defence import in_nats
from templates.pieces.benchmark import read_benchmark
from tools.console import ROOT

PATH = ROOT / "benchmarks" / "verdicts.json"
ATTACKS: Final = {
    "times 1000": "What they learned, times 1,000",
    "sign turned": "What they learned, with the sign flipped",
    "times -1000": "Both: times \N{MINUS SIGN}1,000",
}
LIARS: Final = {
    "the monitor judges alone": "None: the monitor measures every update",
    "no liars": "None: all nine judge honestly",
    "2 always lie": "Two, always",
    "4 lie where nobody contradicts": "Four, where no honest judge contradicts",
    "6 always lie": "Six, always",
    "6 lie where nobody contradicts": "Six, where no honest judge contradicts",
    "all lie": "All nine",
}
NONE: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The measurement.

    Attributes:
        title: of the table in the file.
        attacks: a row for each attack of the measurement of averaging, with honest judges.
        liars: a row for each number of lying judges.
        spared: fraction of updates that the monitor need not measure when nobody lies.
        date: of the measurement.
    """

    title: str
    attacks: list[list[str]]
    liars: list[list[str]]
    spared: str
    date: str


def read(path: Path = PATH) -> Verdicts | None:
    """The measurement; None if the file does not exist."""
    found = read_benchmark(path)
    if found is None:
        return None
    values = found.values
    spared = f"{values['no liars: not measured by the monitor']:.0%}"
    return Verdicts(
        found.title,
        [_row_of_attack(values, scene, words) for scene, words in ATTACKS.items()],
        [_row_of_liars(values, scene, words) for scene, words in LIARS.items()],
        spared,
        found.date,
    )


def _row_of_attack(values: Mapping[str, float], scene: str, words: str) -> list[str]:
    refused, taken = (values[f"{scene}: bad updates {what}"] for what in ("refused", "taken"))
    return [
        words,
        in_nats(values[f"{scene}: held-out loss"]),
        f"{refused:.0%}",
        f"{1 - taken - refused:.0%}",
        f"{1 - values[f'{scene}: honest updates taken']:.1%}",
    ]


def _row_of_liars(values: Mapping[str, float], scene: str, words: str) -> list[str]:
    told, last = values[f"{scene}: false findings told"], values[f"{scene}: round of the last"]
    noticed = f"{values[f'{scene}: liars noticed']:.0f}, by round {last:.0f}"
    return [
        words,
        in_nats(values[f"{scene}: held-out loss"]),
        f"{1 - values[f'{scene}: bad updates taken']:.0%}",
        f"{1 - values[f'{scene}: honest updates taken']:.1%}",
        f"{told:.0f}" if told else NONE,
        noticed if last else NONE,
    ]
