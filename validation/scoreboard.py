"""Published measurements on real GPUs beside the calculator's answers, from one file."""

import math
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.cards import find_card
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Phase
from calculator.resolution import resolve
from validation import fitcheck, hopper
from validation.answers import Answer
from validation.causes import CAUSES
from validation.published_rows import Figure, Row, Source
from validation.subject import find_subject

PATH: Final = Path(__file__).with_name("published") / "memory.toml"
# targets for the error: half of the rows are within the first, nine of ten within the second
TARGET_MEDIAN, TARGET_MOST = 0.02, 0.05


@dataclass(frozen=True, slots=True)
class Score:
    """A published figure in bytes, and the answer to its step."""

    source: Source
    row: Row
    figure: Figure
    measured: int
    answer: Answer

    @property
    def ours(self) -> int:
        """Our figure for the same thing, in bytes."""
        return self.figure.of(self.answer)

    @property
    def error(self) -> float:
        """Relative error of ours."""
        return self.ours / self.measured - 1

    @property
    def is_held(self) -> bool:
        """True if the stated range, less the context where it is not counted, has the figure."""
        return self._holds(self.measured)

    @property
    def is_held_as_counted(self) -> bool:
        """True if the range has the figure once the known differences are taken off."""
        return self._holds(self.measured * (1 + sum(self.differences.values())))

    def _holds(self, size: float) -> bool:
        reserved = self.figure in (Figure.OF_ALLOCATOR, Figure.RESERVED)
        context = find_card(self.source.card).context if reserved else 0
        return self.answer.low <= size + context <= self.answer.high

    @property
    def differences(self) -> dict[str, float]:
        """The known differences, by their keys: how much higher each makes ours, of the figure."""
        found = _extra_bytes(self.source.differs, self.row.model, tuple(self.row.options.items()))
        return {key: -extra / self.measured for key, extra in found.items() if extra}

    @property
    def left(self) -> float:
        """The error that known differences do not explain."""
        return self.error - sum(self.differences.values())

    @property
    def is_explained(self) -> bool:
        """True if little of the error is left."""
        return abs(self.left) <= TARGET_MOST


@cache
def _extra_bytes(
    causes: tuple[str, ...], model: str, options: tuple[tuple[str, str], ...]
) -> Mapping[str, float]:
    """Bytes by which each cause makes ours larger, for a step."""
    sizes = {key: size for key in causes if (size := CAUSES[key].size)}
    if not sizes:
        return {}
    architecture = find_subject(model, None).architecture
    plan = resolve(architecture, Plan.parse(dict(options)))
    return {key: size(architecture, plan) for key, size in sizes.items()}


@cache
def sources() -> tuple[Source, ...]:
    """All sources: the T4's, our cards', then those of the file."""
    content = tomllib.loads(PATH.read_text("utf-8"))
    ours = map(hopper.source, hopper.TITLES)
    return (fitcheck.source(), *ours, *map(_source, content["source"]))


@cache
def steps() -> tuple[tuple[Source, Row], ...]:
    """Every row with its source."""
    return tuple((source, row) for source in sources() for row in source.rows)


def scores(answers: Iterable[Answer]) -> tuple[Score, ...]:
    """Every figure of every row, with the answers to `steps`."""
    return tuple(
        Score(source, row, figure, row.in_bytes(printed), answer)
        for (source, row), answer in zip(steps(), answers, strict=True)
        for figure, printed in {source.figure: row.printed, **row.more}.items()
    )


def answers_to(places: range) -> list[Answer]:
    """The calculator's answers to some of `steps`."""
    return [_answer(*steps()[place]) for place in places]


def _answer(source: Source, row: Row) -> Answer:
    """The answer to a row."""
    found = row.answer(source.card, source.expandable)
    if not source.is_classifier:
        return found
    return found.less(row.report.gpu.total - as_classifier(row.architecture, row.plan))


def as_classifier(architecture: Architecture, plan: Plan) -> int:
    """The peak in bytes when the model scores two classes instead of every word.

    The calculator has only the masked-language-model head. So it counts a vocabulary of two words,
    and the missing words get their weights, gradients and states back. Their gradient comes last
    in a backward pass, so it is there at the peak only where gradients stay from step to step.
    """
    whole = estimate(architecture, plan)
    small = estimate(replace(architecture, vocabulary_size=2), plan)
    update, without = whole.phases[Phase.UPDATE], small.phases[Phase.UPDATE]
    words = update.weights - without.weights + update.optimizer - without.optimizer
    if whole.plan.accumulation > 1:
        words += update.gradients - without.gradients
    before = (small.phases[phase].total + words for phase in Phase if phase != Phase.UPDATE)
    return max(*before, update.total)


def median(errors: Iterable[float]) -> float:
    """Median of the absolute values."""
    return statistics.median(map(abs, errors))


def most(errors: Sequence[float], share: float = 0.9) -> float:
    """Smallest absolute error that `share` of the rows do not exceed.

    >>> most([0.01, -0.02, 0.03, -0.04, 0.05, 0.06, -0.07, 0.08, 0.09, 0.5])
    0.09
    """
    ordered = sorted(map(abs, errors))
    return ordered[math.ceil(share * len(ordered)) - 1]


def _source(entry: Mapping[str, Any]) -> Source:
    unit, common = entry["unit"], entry["options"]
    return Source(
        entry["key"],
        entry["title"],
        dict(_addresses(entry)),
        entry["machine"],
        entry["card"],
        Figure(entry["figure"]),
        tuple(entry["assumed"]),
        tuple(entry["left_out"]),
        tuple(_row(row, common, unit) for row in entry["row"]),
        tuple(entry.get("differs", ())),
        entry.get("others", ""),
        entry.get("head", "") == "classifier",
        entry.get("expandable", False),
    )


def _addresses(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "address" in entry:
        yield entry["title"], entry["address"]
        return
    base = f"https://github.com/{entry['repository']}/blob/{entry['commit']}"
    yield from ((f"{entry['repository']}, {file}", f"{base}/{file}") for file in entry["files"])


def _row(entry: Mapping[str, Any], common: Mapping[str, Any], unit: str) -> Row:
    options = {name: str(value) for name, value in {**common, **entry["options"]}.items()}
    return Row(
        entry["words"],
        entry["model"],
        options,
        entry["published"],
        unit,
        entry.get("others", ""),
        {Figure.OF_ALLOCATOR: entry["reserved"]} if "reserved" in entry else {},
    )
