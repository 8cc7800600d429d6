"""A benchmark's recorded figures, as the pages show them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One table of a file below benchmarks/.

    Attributes:
        title: of the table.
        date: the day of measuring.
        values: by the figures' names, in the unit that the file gives for each.
    """

    title: str
    date: str
    values: Mapping[str, float]

    def loss(self, way: str) -> str:
        """The mean loss of a way to train, and the range over its seeds."""
        low, high = self.values[f"{way}: lowest"], self.values[f"{way}: highest"]
        return f"{self.values[f'{way}: loss, mean']:.2f} ({low:.2f}\N{EN DASH}{high:.2f})"


def read_benchmark(path: Path, word: str = "") -> Benchmark | None:
    """The table whose title has `word`; None if the file does not exist.

    Raises:
        ValueError: not exactly one table has the word.
    """
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = [table for table in content["tables"] if word in table["title"]]
    values = {figure["name"]: float(figure["value"]) for figure in table["figures"]}
    return Benchmark(table["title"], content["machine"]["date"][:10], values)
