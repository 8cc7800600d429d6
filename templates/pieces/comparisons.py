"""Results that take the calculator a minute, computed on every core and kept on disk.

Above all a report for each of some thousand measured rows. The build and several tests use them, so
they are kept under a name made from all files that they depend on: whoever changes one computes
them again.
"""

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar, cast

from calculator.errors import InputError
from tools.console import ROOT
from tools.files import WORKSHOP, digest, write_atomically
from validation import scoreboard
from validation.compare import Comparison, compare
from validation.rows import Row, read_rows
from validation.scoreboard import Score, answers_to, steps

KEPT = WORKSHOP / "comparisons"
SOURCES = (ROOT / "calculator", ROOT / "validation")
S = TypeVar("S")
T = TypeVar("T")
BATCH = 50  # neighboring rows are of one model and share recorded steps
PART = 12  # neighboring steps of real cards, which take longer


@cache
def comparisons_on(device: str) -> list[Comparison]:
    """The device's rows, without those whose options the calculator rejects for the model."""
    return kept(device, lambda: computed(list(read_rows(device))))


@cache
def scores() -> tuple[Score, ...]:
    """Every published figure of a real card with the calculator's answer."""
    parts = [range(len(steps()))[start : start + PART] for start in range(0, len(steps()), PART)]
    found = kept("scores", lambda: on_all_cores(answers_to, parts))
    return scoreboard.scores(chain.from_iterable(found))


def kept(name: str, compute: Callable[[], T], sources: Sequence[Path] = ()) -> T:
    """The result of `compute`, or an earlier one if none of its files has changed since."""
    path = KEPT / f"{name}-{_name(sources)}.pickle"
    with suppress(FileNotFoundError):
        return cast(T, pickle.loads(path.read_bytes()))
    found = compute()
    for old in KEPT.glob(f"{name}-*.pickle"):
        old.unlink(missing_ok=True)
    write_atomically(path, pickle.dumps(found))
    return found


def computed(rows: Sequence[Row]) -> list[Comparison]:
    """The comparisons of `rows`, in their order, computed by one process for each core."""
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    return [item for found in on_all_cores(_compared, batches) for item in found]


def on_all_cores(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """The function of each item, in their order, computed by one process for each core."""
    # A fork would inherit the clock's thread of `tools.console.step`. Looking for garbage takes a
    # fifth of the time, and finds 160 kB for each measured row, which end with the process.
    settings: dict[str, Any] = {"max_workers": os.cpu_count(), "mp_context": get_context("spawn")}
    with ProcessPoolExecutor(**settings, initializer=gc.disable) as pool:
        return list(pool.map(function, items))


def _compared(rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for row in rows:
        with suppress(InputError):
            found += compare([row])
    return found


def _name(sources: Sequence[Path] = ()) -> str:
    """A name for the interpreter and the content of every file in `SOURCES` and `sources`."""
    version = "-".join(map(str, sys.version_info[:3]))
    return f"{version}-{digest([*_files(), *sources])}"


def _files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
