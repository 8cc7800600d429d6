"""The calculator's reports for the measured rows, computed on every core and kept on disk.

A report for each of some thousand rows takes a minute of computing. The build and several tests
use them, so they are kept under a name made from all files that they depend on: whoever changes
one computes them again.
"""

import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from calculator.errors import InputError
from tools.console import ROOT
from tools.files import WORKSHOP, digest, write_atomically
from validation.compare import Comparison, compare
from validation.rows import Row, read_rows

KEPT = WORKSHOP / "comparisons"
SOURCES = (ROOT / "calculator", ROOT / "validation")
BATCH = 50  # neighboring rows are of one model and share recorded steps


@cache
def comparisons_on(device: str) -> list[Comparison]:
    """The device's rows, without those whose options the calculator rejects for the model."""
    kept = KEPT / f"{device}-{_name()}.pickle"
    with suppress(FileNotFoundError):
        return cast(list[Comparison], pickle.loads(kept.read_bytes()))
    found = computed(list(read_rows(device)))
    for old in KEPT.glob(f"{device}-*.pickle"):
        old.unlink(missing_ok=True)
    write_atomically(kept, pickle.dumps(found))
    return found


def computed(rows: Sequence[Row]) -> list[Comparison]:
    """The comparisons of `rows`, in their order, computed by one process for each core."""
    batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    # A fork would inherit the clock's thread of `tools.console.step`.
    settings: dict[str, Any] = {"max_workers": os.cpu_count(), "mp_context": get_context("spawn")}
    with ProcessPoolExecutor(**settings) as pool:
        return [item for found in pool.map(_compared, batches) for item in found]


def _compared(rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for row in rows:
        with suppress(InputError):
            found += compare([row])
    return found


def _name() -> str:
    """A name for the interpreter and the content of every file in `SOURCES`."""
    version = "-".join(map(str, sys.version_info[:3]))
    return f"{version}-{digest(_files())}"


def _files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
