"""The calculator beside every figure from a real card: errors and coverage by card and plan."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, assert_never

from calculator.plan import BaseBits, Plan
from validation import fitcheck
from validation.answers import Answer, answer
from validation.causes import CAUSES
from validation.published_rows import Figure, Row, Source
from validation.scoreboard import Score, median, most, scores

LISTED: Final = 0.02  # a larger error is listed with its causes


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure of a real card, ours for the same thing, and the range for all that is used."""

    source: Source
    row: Row
    figure: Figure
    measured: int
    answer: Answer
    score: Score | None = None  # of published figures, for the known differences

    @property
    def ours(self) -> int:
        """Our answer to the same question, in bytes."""
        match self.figure:
            case Figure.ALLOCATED | Figure.ACTIVE | Figure.NOT_SAID:
                return self.answer.allocated
            case Figure.OF_ALLOCATOR | Figure.RESERVED:
                return self.answer.reserved
            case Figure.USED:
                return self.answer.used
            case other:
                assert_never(other)

    @property
    def error(self) -> float:
        """Relative error."""
        return self.ours / self.measured - 1

    @property
    def group(self) -> str:
        """The card, and the kind of plan."""
        return f"{self.source.machine.partition(',')[0]}, {kind_of(self.row.plan)}"


def kind_of(plan: Plan) -> str:
    """A name for what is trained: QLoRA, LoRA or full."""
    if plan.quantization is not BaseBits.NONE:
        return "QLoRA"
    return "LoRA" if plan.lora else "full"


@cache
def everything() -> tuple[Beside, ...]:
    """Every figure of every real step."""
    found = [Beside(s.source, s.row, s.source.figure, s.row.bytes, _of(s), s) for s in scores()]
    source = fitcheck.source()
    for row in source.rows:
        ours = answer(row.report)
        for figure, printed in {source.figure: row.printed, **row.more}.items():
            found.append(Beside(source, row, figure, row.in_bytes(printed), ours))
    return tuple(found)


def _of(score: Score) -> Answer:
    """The answer to a published row; the guide of 2022 is counted as its classifier."""
    found = answer(score.row.report)
    less = score.row.report.gpu.total - score.ours
    return Answer(*(getattr(found, name) - less for name in Answer.__slots__))


def summary() -> Iterator[str]:
    """The lines that `python -m validation real` prints."""
    rows = everything()
    yield f"{'':<34}{'rows':>6}{'median':>9}{'p90':>9}{'worst':>9}"
    for title, figures in {
        "allocated": (Figure.ALLOCATED, Figure.ACTIVE),
        "reserved": (Figure.OF_ALLOCATOR, Figure.RESERVED),
        "used": (Figure.USED,),
        "not said": (Figure.NOT_SAID,),
    }.items():
        chosen = [item for item in rows if item.figure in figures]
        yield _line(title, chosen)
        for group in sorted({item.group for item in chosen}):
            yield _line(f"  {group}", [item for item in chosen if item.group == group])
    yield from coverage([item for item in rows if item.figure is Figure.USED])
    beyond = [item for item in rows if abs(item.error) > LISTED]
    yield f"\noff by more than {LISTED:.0%}: {len(beyond)} of {len(rows)}"
    yield from map(_listed, sorted(beyond, key=lambda item: (item.group, -abs(item.error))))


def _line(title: str, rows: Sequence[Beside]) -> str:
    errors = [item.error for item in rows]
    worst = max(errors, key=abs)
    figures = "".join(f"{100 * value:>9.2f}" for value in (median(errors), most(errors), worst))
    return f"{title:<34}{len(rows):>6}{figures}"


def coverage(rows: Sequence[Beside]) -> Iterator[str]:
    """Shares of steps whose memory is in the stated range, and its median width."""
    yield f"\n{'stated range':<34}{'rows':>6}{'held':>9}{'width':>9}"
    for group in ("all", *sorted({item.group for item in rows})):
        chosen = [item for item in rows if group in ("all", item.group)]
        held = sum(holds(item) for item in chosen) / len(chosen)
        width = median(item.answer.high / item.answer.low - 1 for item in chosen)
        yield f"{group:<34}{len(chosen):>6}{100 * held:>8.0f}%{100 * width:>8.1f}%"


def holds(item: Beside) -> bool:
    """True if the stated range holds what the card showed."""
    return item.answer.low <= item.measured <= item.answer.high


def _listed(item: Beside) -> str:
    causes = ", ".join(reasons(item)) or "unexplained"
    words = f"{item.source.key}: {item.row.words}"
    return f"{100 * item.error:+8.2f}  {item.figure.value:<12} {words:<58} {causes}"


def reasons(item: Beside) -> Iterable[str]:
    """Known differences with their shares of the figure, and what they leave."""
    if item.score is None:
        return
    known = item.score.differences
    for key, share in known.items():
        yield f"{CAUSES[key].title} {100 * share:+.1f}"
    if known:
        yield f"left {100 * (item.error - sum(known.values())):+.1f}"
