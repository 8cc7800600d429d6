"""Local steps measured beside averaging, as table rows."""

from dataclasses import dataclass
from pathlib import Path

from templates.pieces.benchmark import RECORDED, read_benchmark


@dataclass(frozen=True, slots=True)
class LocalSteps:
    """The measurement: its rows, its title, the plain loop's loss and the day of measuring."""

    rows: list[list[str]]
    title: str
    plain: str
    date: str


def measured(path: Path = RECORDED) -> LocalSteps | None:
    """The newest measurement, None where there is none."""
    found = read_benchmark("sparse", path)
    if found is None:
        return None
    values = found.values
    rows = [["Loss after training", found.loss("synchronous"), found.loss("sparse")]]
    for word in ("sent", "received"):
        cells = [
            f"{values[f'{way}: {word} by a peer']:,.0f} kB" for way in ("synchronous", "sparse")
        ]
        rows.append([f"{word.capitalize()} by a volunteer for 4,096 sequences", *cells])
    plain = found.loss("plain loop, batches of 16")
    return LocalSteps(rows, found.title, plain, found.date)
