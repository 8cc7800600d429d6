"""What bad peers did in our measurement, from benchmarks/defence.json, as rows of a table."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "defence.json"
WAYS = ("mean", "centered-clip")
NOT_FINITE = "not finite"
ATTACKS = {
    "all honest": "None: all nine are honest",
    "times 1000": "Gradients times 1,000",
    "sign turned": "Gradients with the sign turned",
    "times -1000": "Both: times \N{MINUS SIGN}1,000",
}


@dataclass(frozen=True, slots=True)
class Defence:
    """What was measured.

    Attributes:
        title: peers, bad ones and steps, in words.
        rows: attack, then error of the average and held-out loss of each way.
        seconds: of an exchange without attack, by way. megabytes: sent by all (kB in the file).
        date: of the measurement.
    """

    title: str
    rows: list[list[str]]
    seconds: tuple[str, ...]
    megabytes: tuple[str, ...]
    date: str


def read(path: Path = PATH) -> Defence | None:
    """What was measured; None as long as nothing was."""
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    table = next(table for table in content["tables"] if " bad " in table["title"])
    figures = {figure["name"]: figure["value"] for figure in table["figures"]}

    def find(way: str, attack: str, what: str) -> float:
        start = f"{way}, {attack}: {what}"
        return float(next(value for name, value in figures.items() if name.startswith(start)))

    rows = []
    for attack, words in ATTACKS.items():
        cells = []
        for way in WAYS:
            cells.append(in_per_cent(find(way, attack, "error of the average")))
            loss = find(way, attack, "held-out loss")
            cells.append(f"{loss:.2f}" if math.isfinite(loss) else NOT_FINITE)
        rows.append([words, *cells])
    return Defence(
        table["title"],
        rows,
        tuple(f"{find(way, 'all honest', 'exchange'):.2f} s" for way in WAYS),
        tuple(f"{find(way, 'all honest', 'sent by all') / 1e3:.2f} MB" for way in WAYS),
        content["machine"]["date"][:10],
    )


def in_per_cent(share: float) -> str:
    """A share of the honest mean's length.

    >>> [in_per_cent(share) for share in (0.0123, 0.61, 222.2)]
    ['1.2 %', '61 %', '22,220 %']
    """
    if not math.isfinite(share):
        return NOT_FINITE
    percent = 100 * share
    return f"{percent:.1f} %" if percent < 10 else f"{percent:,.0f} %"
