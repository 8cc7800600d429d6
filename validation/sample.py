"""Random plans, predicted and then measured: how often the calculator answers, and how well.

Measurements stay in a folder, so that a run goes on where the last one stopped, and another
calculator is compared with the same measurements; predictions are made anew each time.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from calculator.errors import InputError, one_line
from calculator.estimate import estimate
from calculator.laws import RefusedError
from validation.configuration import Configuration
from validation.drawn import SIZES, drawn
from validation.rows import Row, is_stale, read_lines

FOLDER: Final = Path(".build/sample")
MOST_SECONDS: Final = 120
MOST_RESTARTS: Final = 40
CLOSE: Final = 0.02
LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Try:
    """One plan: bytes or a refusal of the calculator, and bytes or a refusal of PyTorch.

    What breaks a law may run: a kernel that a class lacks is its eager code, linear attention in a
    ring computes something else.
    """

    configuration: Configuration
    predicted: int | None
    refusal: str
    breaks_law: bool
    measured: int | None
    error: str

    @property
    def off(self) -> float:
        """Relative error of an answer to a plan that ran."""
        assert self.predicted is not None
        assert self.measured
        return self.predicted / self.measured - 1

    @property
    def is_compared(self) -> bool:
        """True if there are two figures."""
        return self.predicted is not None and bool(self.measured)

    @property
    def words(self) -> list[str]:
        """Its options, a choice with its value."""
        options = self.configuration.as_dict()
        plain = {*SIZES, "model", "layers", "accumulation"} - {"gpus"}
        if "pipeline_parallel" not in options:
            plain.discard("accumulation")
        kept = {name: value for name, value in options.items() if name not in plain}
        if "gpus" in kept:
            kept.setdefault("data_parallel", "ddp")
            del kept["gpus"]
        return [f"{name}={each}" if isinstance(each, str) else name for name, each in kept.items()]


def sample(seed: int, count: int, processes: int, folder: Path) -> Iterator[str]:
    """Predict, measure what is not yet, and compare: the lines that the command prints."""
    _measure_all(seed, count, processes, folder)
    plans = drawn(seed, count)
    rows = _rows(seed, folder)
    tries = [_tried(plan, rows[plan.command]) for plan in plans if plan.command in rows]
    yield f"seed {seed}, {count} plans, {len(tries)} tried"
    yield from report(tries)


def tries_in(folder: Path) -> Iterator[Try]:
    """All plans that were measured in a folder, whatever drew them, with their predictions."""
    rows = _rows("*", folder).values()
    return (_tried(Configuration.from_dict(row["configuration"]), row) for row in rows)


def _tried(plan: Configuration, row: Row) -> Try:
    return Try(plan, *predict(plan), row.get("peak"), row.get("error", ""))


def predict(configuration: Configuration) -> tuple[int | None, str, bool]:
    """Bytes at the peak, or why there is no answer, and whether that is a law."""
    try:
        plan = configuration.plan.on(configuration.card)
        return estimate(configuration.architecture, plan).gpu.total, "", False
    except InputError as error:
        return None, str(error), isinstance(error, RefusedError) and error.is_law
    except Exception as error:  # an answer that fails is counted as none, and shown
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        words = f"FAILED {type(error).__name__} at {where}: {one_line(str(error), LONGEST)}"
        return None, words, False


# -- measuring -----------------------------------------------------------------------------------


def _measure_all(seed: int, count: int, processes: int, folder: Path) -> None:
    """Let several processes measure; one that dies goes on behind the plan that it died of."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["sample", "--seed", str(seed), "--count", str(count), "--folder", str(folder)]
    command = [sys.executable, "-m", "validation", *words]

    def started(part: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, "--part", f"{part}/{processes}"])

    running = {part: started(part) for part in range(processes)}
    restarts = 0
    while running:
        for part, process in [*running.items()]:
            if process.wait() == 0 or restarts == MOST_RESTARTS:
                del running[part]
                continue
            restarts += 1
            running[part] = started(part)


def measure_part(seed: int, count: int, part: str, folder: Path) -> None:
    """Measure each N-th plan from the I-th that has no row of this oracle."""
    index, step = map(int, part.split("/"))
    done, path = _rows(seed, folder), folder / f"{seed}-{index}-{step}.jsonl"
    begun = path.with_suffix(".begun")
    with path.open("a") as file:
        if begun.exists():
            file.write(json.dumps(json.loads(begun.read_text()) | {"error": "the process died"}))
            file.write("\n")
            done = _rows(seed, folder) | {json.loads(begun.read_text())["command"]: {}}
        for plan in drawn(seed, count)[index::step]:
            if plan.command not in done:
                begun.write_text(json.dumps(_head(plan)))
                file.write(json.dumps(_row(plan), separators=(",", ":")) + "\n")
                file.flush()
                done[plan.command] = {}
    begun.unlink(missing_ok=True)


def _head(plan: Configuration) -> Row:
    from validation.measure import versions

    return {"command": plan.command, "configuration": plan.as_dict(), "versions": versions()}


def _row(plan: Configuration) -> Row:
    """The measurement, or the class and the words of what came instead."""
    from validation.measure import measure

    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(MOST_SECONDS)
    try:
        return _head(plan) | measure(plan, "counting") | {"command": plan.command}
    except Exception as error:  # whatever a library raises is its refusal
        return _head(plan) | {"error": _cause(error)}
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError


def _cause(error: BaseException) -> str:
    """The first error of a chain: its class, its file, and what it says."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    frames = traceback.extract_tb(error.__traceback__)
    place = frames[-1].filename.rpartition("site-packages/")[2] if frames else ""
    place = os.path.relpath(place) if place.startswith("/") else place
    line = frames[-1].lineno if frames else 0
    return f"{type(error).__name__} at {place}:{line}: {one_line(str(error), LONGEST)}"


def _rows(seed: int | str, folder: Path) -> dict[str, Row]:
    paths = sorted(folder.glob(f"{seed}-*.jsonl"))
    rows = (row for path in paths for row in read_lines(path))
    return {row["command"]: row for row in rows if not is_stale(row)}


# -- the tables ----------------------------------------------------------------------------------


def report(tries: Sequence[Try]) -> Iterator[str]:
    """Tables by technique and by pair, what is refused by whom, and the worst."""
    run = [each for each in tries if each.measured]
    ran = [each for each in run if not each.breaks_law]
    against = len(run) - len(ran)
    yield f"{len(run)} run by PyTorch, {against} of them against a law and left out below"
    yield f"{len(tries) - len(run)} refused by PyTorch or a library"
    yield _head_line()
    yield _line("all", ran)
    yield from _groups(ran, lambda each: each.words)
    yield "\nby type"
    yield from _groups(ran, lambda each: [each.configuration.subject.kind])
    yield "\npairs with a miss (more than 2 % off, or no answer)"
    pairs = _grouped(ran, lambda each: [" + ".join(two) for two in combinations(each.words, 2)])
    found = [(name, items) for name, items in pairs.items() if _misses(items)]
    for name, items in sorted(found, key=lambda pair: (-_misses(pair[1]), pair[0])):
        yield _line(name, items)
    yield "\nrun by PyTorch, not answered"
    yield from _by_words(
        [(each.refusal, each) for each in ran if each.predicted is None],
    )
    yield "\nrun against a law"
    yield from _by_words([(each.refusal, each) for each in run if each.breaks_law])
    yield "\nrefused by PyTorch, answered"
    others = [each for each in tries if not each.measured]
    yield from _by_words([(each.error, each) for each in others if each.predicted is not None])
    yield "\nrefused by both"
    both = Counter(_kind(each.error) for each in others if each.predicted is None)
    yield from (f"{number:>5}  {words}" for words, number in both.most_common())
    yield "\nnot to the byte, the worst first"
    compared = [each for each in ran if each.is_compared and each.off]
    for each in sorted(compared, key=lambda each: -abs(each.off)):
        yield f"{100 * each.off:+9.3f} {each.measured:>14,}  {each.configuration.command}"


def _misses(items: Sequence[Try]) -> int:
    return sum(not each.is_compared or abs(each.off) > CLOSE for each in items)


def _grouped(tries: Sequence[Try], keys: Callable[[Try], Sequence[str]]) -> dict[str, list[Try]]:
    groups: dict[str, list[Try]] = defaultdict(list)
    for each in tries:
        for key in keys(each):
            groups[key].append(each)
    return groups


def _groups(tries: Sequence[Try], keys: Callable[[Try], Sequence[str]]) -> Iterator[str]:
    for name, items in sorted(_grouped(tries, keys).items()):
        yield _line(name, items)


def _head_line() -> str:
    return f"{'':<48}{'ran':>6}{'answered':>10}{'exact':>7}{'2 %':>6}{'worst %':>10}"


def _line(name: str, ran: Sequence[Try]) -> str:
    compared = [each for each in ran if each.is_compared]
    exact = sum(not each.off for each in compared)
    close = sum(abs(each.off) <= CLOSE for each in compared)
    worst = max((each.off for each in compared), key=abs, default=0.0)
    figures = f"{len(ran):>6}{len(compared):>10}{exact:>7}{close:>6}{100 * worst:>+10.3f}"
    return f"{name:<48}{figures}"


def _kind(words: str) -> str:
    """The class, the place and the beginning of a message."""
    return words[:140]


def _by_words(pairs: Sequence[tuple[str, Try]]) -> Iterator[str]:
    groups: dict[str, list[Try]] = defaultdict(list)
    for words, each in pairs:
        groups[_kind(words)].append(each)
    for words, items in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        yield f"{len(items):>5}  {words}"
        yield from (f"         {each.configuration.command}" for each in items)


def options(parser: Any) -> None:
    """The command's options."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where measurements stay")
    parser.add_argument("--part", help=("I/N: measure every N-th plan from the I-th, and stop"))
