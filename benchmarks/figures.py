"""A measured figure, a table of them, and the words for the machine they come from."""

import json
import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tools.files import write_atomically


@dataclass(frozen=True)
class Figure:
    """One line of a table.

    `target`, where there is one, is the most that `value` should be; with `at_least`, the least.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False

    def verdict(self) -> str:
        """The verdict on the target, in words; empty without a target."""
        if self.target is None:
            return ""
        is_met = self.value >= self.target if self.at_least else self.value <= self.target
        met = "met" if is_met else "MISSED"
        return f"target {self.target:g} {self.unit}: {met}"


@dataclass(frozen=True)
class Table:
    """Figures under a title."""

    title: str
    figures: Sequence[Figure]

    def __str__(self) -> str:
        """The table as aligned text."""
        width = max(len(figure.name) for figure in self.figures)
        lines = [
            f"  {figure.name:<{width}}  {_readable(figure.value):>11} {figure.unit:<5} "
            f"{figure.verdict()}".rstrip()
            for figure in self.figures
        ]
        return "\n".join([self.title, *lines, ""])


def _readable(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def machine(chromium: str) -> dict[str, object]:
    """Facts about the machine that a reader needs to compare figures."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if _has_sysconf() else 0
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "chromium": chromium,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _has_sysconf() -> bool:
    return "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})


def _processor() -> str:
    """The processor's name as Linux gives it, else as Python does."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_part(
    path: Path, part: str, table: Table, command: str, words: Mapping[str, object]
) -> None:
    """Put a part's table into the file of all parts, in place of its older one.

    Args:
        path: the file, which need not exist.
        part: the part's name.
        table: its figures.
        command: measures them again.
        words: the machine's facts, with the date.
    """
    parts = json.loads(path.read_text("utf-8")).get("parts", {}) if path.exists() else {}
    parts[part] = {**asdict(table), "command": command, "machine": words}
    content = {"version": 2, "parts": dict(sorted(parts.items()))}
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
