"""Results that take the calculator minutes, computed on every core and kept on disk.

`Kept` is kept under a name made from all files that it depends on: whoever changes one computes it
again. `Recorded` is committed, so that a build only reads it; tests compare it with the calculator.
`python -m templates.record` computes all of these.
"""

import gc
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from calculator.errors import InputError
from tools.console import ROOT
from tools.files import WORKSHOP, digest, write_atomically
from validation import scoreboard
from validation.answers import Answer
from validation.compare import Comparison, compare
from validation.rows import Row, read_rows
from validation.scoreboard import Score, answers_to, steps

KEPT = WORKSHOP / "comparisons"
RECORDED = ROOT / "templates" / "recorded"
SOURCES = (ROOT / "calculator", ROOT / "validation")
S = TypeVar("S")
T = TypeVar("T")
BATCH = 50  # neighboring rows are of one model and share recorded steps
PART = 12  # neighboring steps of real cards, which take longer


@dataclass(frozen=True)
class Kept(Generic[S, T]):
    """Results of a function for each item, in their order.

    Attributes:
        name: begins the name of the file.
        function: one of a module, which other processes can import.
        items: gives the items, once they are needed.
    """

    name: str
    function: Callable[[S], T]
    items: Callable[[], Sequence[S]]

    @property
    def path(self) -> Path:
        """The file for this interpreter and the content of every source."""
        version = "-".join(map(str, sys.version_info[:3]))
        return KEPT / f"{self.name}-{version}-{digest(_files())}.pickle"

    def results(self) -> list[T]:
        """The results; an earlier build's if none of the sources has changed since."""
        path = self.path
        if not path.is_file():
            compute([self])
        return cast(list[T], pickle.loads(path.read_bytes()))

    def keep(self, results: list[T], path: Path) -> None:
        """Write the results in the place of older ones."""
        for old in KEPT.glob(f"{self.name}-*.pickle"):
            old.unlink(missing_ok=True)
        write_atomically(path, pickle.dumps(results))


@dataclass(frozen=True)
class Recorded(Kept[S, T]):
    """Results in a committed file: JSON, with a line for each entry of an item's result.

    Attributes:
        load: an item's result from its JSON.
    """

    load: Callable[[Any], T] = lambda found: found

    @property
    def path(self) -> Path:
        """The committed file, whatever has changed since."""
        return RECORDED / f"{self.name}.json"

    def results(self) -> list[T]:
        """The results as recorded."""
        return [self.load(found) for found in json.loads(self.path.read_text("utf-8"))]

    def keep(self, results: list[T], path: Path) -> None:
        """Record the results."""
        lines = ",\n".join(_in_lines(as_json(result)) for result in results)
        write_atomically(path, f"[\n{lines}\n]\n".encode())


def as_json(result: Any) -> Any:
    """A result as it is read from JSON: lists for tuples, objects for dataclasses."""
    return json.loads(json.dumps(result, default=asdict))


def _in_lines(found: Any) -> str:
    """JSON with a line for each entry of a list or an object."""
    write = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    match found:
        case list():
            return "[" + ",\n".join(map(write, found)) + "]"
        case dict():
            return "{" + ",\n".join(f"{write(key)}:{write(it)}" for key, it in found.items()) + "}"
    return write(found)


def compute(wanted: Sequence[Kept[Any, Any]]) -> None:
    """Compute results with one process for each core, and keep them in the place of older ones."""
    paths = [each.path for each in wanted]
    # A fork would inherit the clock's thread of `tools.console.step`. Looking for garbage takes a
    # fifth of the time, and finds 160 kB for each measured row, which end with the process.
    settings: dict[str, Any] = {"max_workers": os.cpu_count(), "mp_context": get_context("spawn")}
    with ProcessPoolExecutor(**settings, initializer=gc.disable) as pool:
        asked = [pool.map(each.function, each.items()) for each in wanted]
        for each, path, found in zip(wanted, paths, asked, strict=True):
            each.keep(list(found), path)


def _compared(rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for row in rows:
        with suppress(InputError):
            found += compare([row])
    return found


def _rows(device: str) -> list[Sequence[Row]]:
    rows = list(read_rows(device))
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]


def _places() -> list[range]:
    return [range(len(steps()))[start : start + PART] for start in range(0, len(steps()), PART)]


COMPARISONS = {
    one: Kept(one, _compared, partial(_rows, one)) for one in ("counting", "cpu", "cuda")
}
SCORES = Recorded(
    "scores", answers_to, _places, load=lambda part: [Answer(**each) for each in part]
)


@cache
def comparisons_on(device: str) -> list[Comparison]:
    """The device's rows, without those whose options the calculator rejects for the model."""
    return list(chain.from_iterable(COMPARISONS[device].results()))


@cache
def scores() -> tuple[Score, ...]:
    """Every published figure of a real card with the calculator's answer."""
    return scoreboard.scores(chain.from_iterable(SCORES.results()))


def _files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
