"""The run that the site shows first, as recorded in its live data when the site is built."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.console import ROOT

LIVE = ROOT / "docs" / "live"


@dataclass(frozen=True)
class Run:
    """A folder of live data, read whole; addresses are relative to the site's own."""

    name: str
    note: str
    live: Path = LIVE

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.live / self.name

    def _read(self, name: str, empty: Any = None) -> Any:
        """A file's value; where there is no such file, `empty`, if it is given."""
        path = self.folder / name
        if empty is not None and not path.exists():
            return empty
        return json.loads(path.read_text("utf-8"))

    @cached_property
    def card(self) -> dict[str, Any]:
        """run.json: title, schedule, start and end."""
        found: dict[str, Any] = self._read("run.json")
        return found

    @cached_property
    def peers(self) -> list[dict[str, Any]]:
        """All volunteers that took part."""
        found: list[dict[str, Any]] = self._read("peers.json", [])
        return found

    @cached_property
    def checkpoints(self) -> list[dict[str, Any]]:
        """The checkpoints, oldest first."""
        found: list[dict[str, Any]] = self._read("checkpoints.json", [])
        return found

    @cached_property
    def samples(self) -> dict[str, Any]:
        """The fixed captions, and the pictures' names for each checkpoint."""
        empty: dict[str, Any] = {"prompts": [], "checkpoints": []}
        found: dict[str, Any] = self._read("samples.json", empty)
        return found

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """One row per global step; an incomplete line is left out."""
        path = self.folder / "progress.jsonl"
        text = path.read_text("utf-8") if path.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    @cached_property
    def pictures(self) -> list[tuple[str, str]]:
        """Each fixed caption, and the address of the newest picture drawn for it."""
        last = self.samples["checkpoints"][-1]["images"]
        return [
            (prompt, f"live/{self.name}/{images[0]}")
            for prompt, images in zip(self.samples["prompts"], last, strict=True)
        ]

    @property
    def seconds(self) -> float:
        """Seconds from the first global step to the last."""
        return (_moment(self.steps[-1]["time"]) - _moment(self.steps[0]["time"])).total_seconds()

    @property
    def sequences_per_second(self) -> float:
        """Average over all volunteers together; the clock starts at the first step."""
        return float(sum(step["samples"] for step in self.steps[1:]) / self.seconds)

    @property
    def day(self) -> str:
        """The day of its start, such as 21 November 2026."""
        start = _moment(self.card["start"])
        return f"{start.day} {start:%B %Y}"


def first_run() -> Run:
    """The run at the top of runs.json."""
    entry = entries()[0]
    return Run(entry["name"], entry["note"])


def entries(live: Path = LIVE) -> list[dict[str, str]]:
    """The runs of runs.json: name, title and note."""
    found: list[dict[str, str]] = json.loads((live / "runs.json").read_text("utf-8"))["runs"]
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
