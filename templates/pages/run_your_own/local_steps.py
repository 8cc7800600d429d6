"""Local steps measured beside averaging, from benchmarks/sparse.json, as table rows."""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.console import ROOT

PATH = ROOT / "benchmarks" / "sparse.json"


@dataclass(frozen=True, slots=True)
class LocalSteps:
    """The measurement: its rows, its title, the plain loop's loss and the day of measuring."""

    rows: list[list[str]]
    title: str
    plain: str
    date: str


def measured(path: Path = PATH) -> LocalSteps | None:
    """The newest measurement, None where there is none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = content["tables"]
    values = {figure["name"]: float(figure["value"]) for figure in table["figures"]}

    def loss(way: str) -> str:
        low, high = values[f"{way}: lowest"], values[f"{way}: highest"]
        return f"{values[f'{way}: loss, mean']:.2f} ({low:.2f}\N{EN DASH}{high:.2f})"

    rows = [["Loss after training", loss("synchronous"), loss("sparse")]]
    for word in ("sent", "received"):
        cells = [
            f"{values[f'{way}: {word} by a peer']:,.0f} kB" for way in ("synchronous", "sparse")
        ]
        rows.append([f"{word.capitalize()} by a volunteer for 4,096 sequences", *cells])
    plain = loss("plain loop, batches of 16")
    return LocalSteps(rows, table["title"], plain, content["machine"]["date"][:10])
