"""Effects of bad peers in our measurement, as table rows."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from templates.pieces.benchmark import RECORDED, read_benchmark

WAYS = ("mean", "centered-clip")
NAMES = {"mean": "Mean", "centered-clip": "CenteredClip"}
NOT_FINITE = "not finite"
ATTACKS = {
    "all honest": "None: all nine are honest",
    "times 1000": "Gradients times 1,000",
    "sign turned": "Gradients with the sign flipped",
    "times -1000": "Both: times \N{MINUS SIGN}1,000",
}


@dataclass(frozen=True, slots=True)
class Defence:
    """Measurements of each way of averaging under each attack.

    Attributes:
        title: peers, bad peers and steps, in words.
        rows: attack, then error of the average and held-out loss for each way.
        steps: number of training steps.
        curves: attack and way, then the held-out loss after each of `looks` steps.
        milliseconds: CPU time to average a million values from all peers, by way.
        megabytes: sent by all peers in an exchange without attack, by way (kB in the file).
        date: date of the measurement.
    """

    title: str
    rows: list[list[str]]
    steps: int
    looks: list[int]
    curves: list[list[str]]
    milliseconds: tuple[str, ...]
    megabytes: tuple[str, ...]
    date: str


def read(path: Path = RECORDED) -> Defence | None:
    """The measurements; None if it is not recorded."""
    found = read_benchmark("defence", path)
    if found is None:
        return None
    figures = found.values

    def find(way: str, attack: str, what: str) -> float:
        start = f"{way}, {attack}: {what}"
        return next(value for name, value in figures.items() if name.startswith(start))

    peers = found.title.split()[0]
    told = (re.search(r"held-out loss after (\d+) steps", name) for name in figures)
    looks = sorted({int(found[1]) for found in told if found})
    rows = []
    for attack, words in ATTACKS.items():
        cells = []
        for way in WAYS:
            cells.append(in_per_cent(find(way, attack, "error of the average")))
            cells.append(in_nats(find(way, attack, f"held-out loss after {looks[-1]} steps")))
        rows.append([words, *cells])
    curves = [
        [words, NAMES[way]]
        + [in_nats(find(way, attack, f"held-out loss after {look} steps")) for look in looks]
        for attack, words in ATTACKS.items()
        for way in WAYS
    ]
    return Defence(
        found.title,
        rows,
        looks[-1],
        looks,
        curves,
        tuple(f"{figures[f'{way}: a million values of {peers} peers']:.0f} ms" for way in WAYS),
        tuple(f"{find(way, 'all honest', 'sent by all') / 1e3:.2f} MB" for way in WAYS),
        found.date,
    )


def in_nats(loss: float) -> str:
    """A loss with two decimals."""
    return f"{loss:.2f}" if math.isfinite(loss) else NOT_FINITE


def in_per_cent(share: float) -> str:
    """A fraction of the honest mean's length, as a percentage.

    >>> [in_per_cent(share) for share in (0.0123, 0.61, 222.2)]
    ['1.2 %', '61 %', '22,220 %']
    """
    if not math.isfinite(share):
        return NOT_FINITE
    percent = 100 * share
    return f"{percent:.1f} %" if percent < 10 else f"{percent:,.0f} %"
