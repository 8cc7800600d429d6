"""Measurements as data: one JSON object a line, in `measurements/`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from validation.configuration import Configuration

# Raised when the oracle counts otherwise than before; rows of earlier ones are measured again.
ORACLE: Final = 4
FOLDER: Final = Path(__file__).with_name("measurements")

Row = dict[str, Any]


def read_rows(device: str = "*", folder: Path = FOLDER) -> Iterator[Row]:
    """Every complete row of the device's files, in the order of the files' names."""
    for path in sorted(folder.glob(f"{device}-*.jsonl")):
        yield from read_lines(path)


def read_lines(path: Path) -> Iterator[Row]:
    """The whole rows of a file; a crash can leave a last line unfinished."""
    text = path.read_text()
    yield from map(json.loads, text[: text.rfind("\n") + 1].splitlines())


class RowFile:
    """Rows of one device and model type; after a crash the last whole row is the last one."""

    def __init__(self, device: str, kind: str, folder: Path = FOLDER) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.device = device
        self.path = folder / f"{device}-{kind}.jsonl"
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a crash can leave a last line unfinished
        if whole != text:
            write_whole(self.path, whole)
        rows = [json.loads(line) for line in whole.splitlines()]
        self._rows = {row["command"]: row for row in rows}

    def __contains__(self, configuration: Configuration) -> bool:
        row = self._rows.get(measure_command(configuration, self.device))
        return row is not None and not is_stale(row)

    def append(self, row: Row) -> None:
        """Write one row for good, in the place of an earlier oracle's."""
        replaced = self._rows.pop(row["command"], None)
        self._rows[row["command"]] = row
        if replaced is not None:
            write_whole(self.path, "".join(map(_line, self._rows.values())))
            return
        with self.path.open("a") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())

    def has_stale(self, configuration: Configuration) -> bool:
        """True if an earlier oracle measured this configuration."""
        row = self._rows.get(measure_command(configuration, self.device))
        return row is not None and is_stale(row)


def is_stale(row: Row) -> bool:
    """True if an earlier oracle measured this row."""
    return bool(row.get("versions", {}).get("oracle") != ORACLE)


def _line(row: Row) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file in one go: a reader sees the old text or the new."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def measure_command(configuration: Configuration, device: str) -> str:
    """The command that makes a row again."""
    return f"python -m validation measure {configuration.command} --device {device}"
