"""The order in which processes take files of tests: the longest first, each folder in one process.

A browser, a Python in it and libraries are started once for all tests of a folder that a process
runs in a row. pytest-xdist gives a process one unit at a time: a file, a folder whose tests share
much work, or a test of one of the files whose tests are long.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

SECONDS: Final = "tests/seconds"  # of each unit, in pytest's own cache
# In a process, each page is rendered once, and the processes that measure start once.
TOGETHER: Final = ("tests/pages", "tests/validation")
SHARED: Final = ("tests/browser/test_every_page.py",)
# What a unit takes that was never timed, as all in a new checkout. The longest have their own
# seconds, as timed on two cores, so that none is left for the end; the first that fits counts.
UNTIMED: Final = {
    "tests/validation": 440.0,
    "tests/training/test_swarm.py": 120.0,
    "tests/training/rehearsal/test_rehearsal.py": 115.0,
    "tests/browser/test_form.py": 85.0,
    "tests/browser/test_tab.py": 65.0,
    "tests/pages": 60.0,
    "tests/training/test_local_steps.py": 55.0,
    "tests/browser/test_memory.py": 50.0,
    "tests/calculator/planner/test_fit.py": 45.0,
    "tests/browser/test_model.py": 45.0,
    "tests/browser/test_offline.py": 40.0,
    "tests/calculator/planner/test_advice.py": 40.0,
    "tests/training/access/test_banned.py": 35.0,
    "tests/calculator/doors/test_check.py": 30.0,
    "tests/browser/test_every_page.py": 4.0,
    "tests/training": 15.0,
    "tests/browser": 15.0,
    "tests/notebooks": 30.0,
}


def unit_of(test: str) -> str:
    """The unit that a test belongs to."""
    file = test.partition("::")[0]
    folder = next((one for one in TOGETHER if file.startswith(f"{one}/")), None)
    return test if file in SHARED else folder or file


def folder_of(unit: str) -> str:
    """The folder whose tests share what takes long to start: "tests/browser" or "calculator"."""
    return "/".join(unit.partition("::")[0].split("/")[: 1 + unit.startswith("tests/")])


def expected_seconds(unit: str, timed: dict[str, float]) -> float:
    """The seconds of a unit in the last run, else those of a usual one in its folder."""
    return timed.get(unit) or next((UNTIMED[one] for one in UNTIMED if unit.startswith(one)), 3.0)


def next_unit(waiting: list[str], before: str, running: list[str], timed: dict[str, float]) -> str:
    """The longest unit of the folder of the one before; then of a folder in which no other runs."""
    others = {folder_of(unit) for unit in running}

    def rank(unit: str) -> tuple[bool, bool, float]:
        folder = folder_of(unit)
        stays = bool(before) and folder == folder_of(before)
        return stays, folder not in others, expected_seconds(unit, timed)

    return max(waiting, key=rank)


class SideBySide(LoadScopeScheduling):
    """Gives each process that is free the unit that `next_unit` names."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        cache = getattr(config, "cache", None)  # none with `-p no:cacheprovider`
        self.timed: dict[str, float] = cache.get(SECONDS, {}) if cache else {}

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        running = [
            unit
            for other, work in self.assigned_work.items()
            for unit, tests in work.items()
            if other is not node and not all(tests.values())
        ]
        before = next(reversed(self.assigned_work[node]), "")
        unit = next_unit(list(self.workqueue), before, running, self.timed)
        self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)


class Stopwatch:
    """Sums what each unit takes, and keeps it for the next run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one part of a test."""
        unit = unit_of(report.nodeid)
        self.seconds[unit] = round(self.seconds.get(unit, 0.0) + report.duration, 2)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the seconds beside those of units that did not run."""
        if cache := getattr(session.config, "cache", None):
            cache.set(SECONDS, cache.get(SECONDS, {}) | self.seconds)
