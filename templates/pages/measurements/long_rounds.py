"""Losses after longer rounds of local steps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from templates.pieces.benchmark import RECORDED, read_benchmark

# synchronous steps of a round, and one file for all, as benchmarks/long_rounds.py has them
WAYS: Final = ((1, False), (8, False), (1, True), (2, True))


@dataclass(frozen=True, slots=True)
class LongRounds:
    """The measurement.

    Attributes:
        title: of its table. date: the day of measuring.
        synchronous: loss with averaging, in words.
        losses: in words, in the order of `WAYS`.
    """

    title: str
    date: str
    synchronous: str
    losses: list[str]

    def rows(self, less: list[float]) -> list[list[str]]:
        """Rows of a table, with the times that each way moves less than averaging."""
        rows = [["Averaging after every step", self.synchronous, "1"]]
        for (length, one_file), loss, times in zip(WAYS, self.losses, less, strict=True):
            words = f"Rounds as long as {length} {'step' if length == 1 else 'steps'}"
            note = "<small>one file for all, simulated</small>" if one_file else ""
            rows.append([words + note, loss, f"{times:.0f}"])
        return rows


def read(path: Path = RECORDED) -> LongRounds | None:
    """The newest measurement, None where there is none."""
    found = read_benchmark("long_rounds", path)
    if found is None:
        return None
    losses = [
        found.loss(f"rounds of {n}{', one file' if one_file else ''}") for n, one_file in WAYS
    ]
    return LongRounds(found.title, found.date, found.loss("synchronous"), losses)
