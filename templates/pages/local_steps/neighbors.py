"""Files that leave the monitor in a round, from benchmarks/neighbors.json, for a sentence."""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.console import ROOT

PATH = ROOT / "benchmarks" / "neighbors.json"


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The measurement: megabytes with none, half and all volunteers reachable, and its day."""

    none: str
    half: str
    all: str
    date: str


def measured(path: Path = PATH) -> Neighbors | None:
    """The newest measurement, None where there is none."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    (table,) = content["tables"]
    none, half, all_of_them = (f"{figure['value']:.3g}" for figure in table["figures"])
    return Neighbors(none, half, all_of_them, content["machine"]["date"][:10])
