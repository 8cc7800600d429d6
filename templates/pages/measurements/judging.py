"""Effects of bad peers in runs with local steps, as table rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from templates.pages.measurements.defence import in_nats
from templates.pieces.benchmark import RECORDED, read_benchmark

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


WAYS: Final = {
    "all honest": "All updates; no one turns bad",
    "all are measured": "All updates",
    "a sample": "What it must",
}


@dataclass(frozen=True, slots=True)
class Judging:
    """The measurement: its title, a row for each attack, and its date."""

    title: str
    rows: list[list[str]]
    date: str


def read(path: Path = RECORDED) -> Judging | None:
    """The measurement; None if it is not recorded."""
    found = read_benchmark("judging", path)
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


def rejected(path: Path = RECORDED) -> list[tuple[str, float]]:
    """Share of the updates that were rejected, by what bad peers send; honest updates last."""
    found = read_benchmark("judging", path)
    if found is None:
        return []
    bad = [
        (words, 1 - found.values[f"{attack}, judged: bad updates taken"])
        for attack, words in ATTACKS.items()
        if attack != HONEST
    ]
    return [*bad, ("Honest updates", 1 - found.values[f"{HONEST}, judged: honest updates taken"])]


def read_sampled(path: Path = RECORDED) -> Judging | None:
    """The measurement with a hundred volunteers; None if it is not recorded."""
    found = read_benchmark("sampled", path)
    if found is None:
        return None
    rows = [
        [
            words,
            in_nats(found.values[f"{way}: held-out loss"]),
            f"{found.values[f'{way}: updates measured']:.0%}",
            f"{found.values[f'{way}: bad updates taken, of each bad volunteer']:.1f}",
            f"{1 - found.values[f'{way}: honest updates taken']:.1%}",
        ]
        for way, words in WAYS.items()
    ]
    return Judging(found.title, rows, found.date)
