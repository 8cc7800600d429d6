"""The run that the site shows first, as its live data say when the site is built."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

LIVE = Path(__file__).resolve().parent.parent / "docs" / "live"


@dataclass(frozen=True)
class Run:
    """A folder of live data, read whole; addresses are relative to the site's own."""

    name: str
    note: str

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return LIVE / self.name

    def _read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))

    @cached_property
    def card(self) -> dict[str, Any]:
        """run.json: title, schedule, start and end."""
        found: dict[str, Any] = self._read("run.json")
        return found

    @cached_property
    def peers(self) -> list[dict[str, Any]]:
        """Everyone who helped."""
        found: list[dict[str, Any]] = self._read("peers.json")
        return found

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """A row for each global step."""
        lines = (self.folder / "progress.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @cached_property
    def pictures(self) -> list[tuple[str, str]]:
        """Each fixed caption, and the address of the first picture drawn from it last."""
        samples = self._read("samples.json")
        last = samples["checkpoints"][-1]["images"]
        return [
            (prompt, f"live/{self.name}/{images[0]}")
            for prompt, images in zip(samples["prompts"], last, strict=True)
        ]

    @property
    def seconds(self) -> float:
        """From the first global step to the last."""
        return (_moment(self.steps[-1]["time"]) - _moment(self.steps[0]["time"])).total_seconds()

    @property
    def sequences_per_second(self) -> float:
        """Sequences of all volunteers together, on average; the first step opens the clock."""
        return float(sum(step["samples"] for step in self.steps[1:]) / self.seconds)

    @property
    def day(self) -> str:
        """The day of its start, such as 21 November 2026."""
        start = _moment(self.card["start"])
        return f"{start.day} {start:%B %Y}"


def first_run() -> Run:
    """The run at the top of runs.json."""
    entry = json.loads((LIVE / "runs.json").read_text("utf-8"))["runs"][0]
    return Run(entry["name"], entry["note"])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
