"""Losses after longer rounds of local steps, from benchmarks/long-rounds.json."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.console import ROOT

PATH: Final = ROOT / "benchmarks" / "long-rounds.json"
# synchronous steps of a round, and one file for all, as tests/benchmarks/long_rounds.py has them
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


def read(path: Path = PATH) -> LongRounds | None:
    """The newest measurement, None where there is none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = content["tables"]
    values = {figure["name"]: float(figure["value"]) for figure in table["figures"]}

    def loss(way: str) -> str:
        low, high = values[f"{way}: lowest"], values[f"{way}: highest"]
        return f"{values[f'{way}: loss, mean']:.2f} ({low:.2f}\N{EN DASH}{high:.2f})"

    losses = [loss(f"rounds of {n}{', one file' if one_file else ''}") for n, one_file in WAYS]
    date = content["machine"]["date"][:10]
    return LongRounds(table["title"], date, loss("synchronous"), losses)
