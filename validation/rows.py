"""Measurements as data: one JSON object a line, in `measurements/`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from validation.configuration import Configuration

FOLDER: Final = Path(__file__).with_name("measurements")

Row = dict[str, Any]


def read_rows(device: str = "*", folder: Path = FOLDER) -> Iterator[Row]:
    """Every complete row of the device's files, in the order of the files' names."""
    for path in sorted(folder.glob(f"{device}-*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


class RowFile:
    """Rows of one device and family; a run that was cut off goes on after the last whole row."""

    def __init__(self, device: str, family: str, folder: Path = FOLDER) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{device}-{family}.jsonl"
        self._mend()
        rows = [json.loads(line) for line in self._text().splitlines()]
        self._known = {row["command"] for row in rows}

    def __contains__(self, configuration: Configuration) -> bool:
        device = self.path.name.split("-")[0]
        return measure_command(configuration, device) in self._known

    def append(self, row: Row) -> None:
        """Write one row at the end, for good."""
        with self.path.open("a") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known.add(row["command"])

    def _text(self) -> str:
        return self.path.read_text() if self.path.exists() else ""

    def _mend(self) -> None:
        """Drop a last line that a crash left unfinished."""
        text = self._text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            write_whole(self.path, whole)


def write_whole(path: Path, text: str) -> None:
    """Write a file in one go: a reader sees the old text or the new."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def measure_command(configuration: Configuration, device: str) -> str:
    """The command that makes a row again."""
    return f"python -m validation measure {configuration.command} --device {device}"
