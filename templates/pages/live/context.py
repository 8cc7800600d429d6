"""Data for the live page before any script runs: the first run of docs/live."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from templates.pages.live import side_by_side
from templates.pieces.loss_curve import draw
from templates.pieces.recorded_run import Run, entries, first_run
from templates.pieces.scripts import ask_script

TEXTS = Path(__file__).with_name("texts.mjs")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard."""

    key: str
    label: str
    sortable: bool = True


COLUMNS = (
    Column("rank", "Rank", sortable=False),
    Column("name", "Name"),
    Column("samples", "Sequences"),
    Column("share", "Share", sortable=False),
    Column("steps", "Steps"),
    Column("seconds", "Time"),
    Column("traffic", "Exchanged"),
    Column("last_seen", "Last seen (UTC)"),
    Column("state", "State"),
)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "run": describe(first_run()),
        "others": entries()[1:],
        "columns": COLUMNS,
        "pair": side_by_side.read(),
    }


def describe(run: Run) -> dict[str, Any]:
    """All texts about a run, made by the modules of the page's script, and its curve."""
    curve = draw([(line["step"], line["loss"]) for line in run.steps])
    return ask_script(TEXTS, run.folder) | {"note": run.note, "curve": curve}
