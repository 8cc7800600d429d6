"""The calculator beside every figure from a real card: errors and coverage by card and plan."""

from collections.abc import Iterator, Sequence
from typing import Final

from calculator.plan import BaseBits, Plan
from validation.causes import CAUSES
from validation.published_rows import Figure
from validation.scoreboard import Score, median, most

LISTED: Final = 0.02  # a larger error is listed with its causes
BEFORE_2: Final = ("guide", "site")  # sources that ran PyTorch 1 and its optimizers
KINDS: Final = {
    "allocated": (Figure.ALLOCATED, Figure.ACTIVE),
    "reserved": (Figure.OF_ALLOCATOR, Figure.RESERVED),
    "used": (Figure.USED,),
    "not said": (Figure.NOT_SAID,),
}


def kind_of(plan: Plan) -> str:
    """A name for what is trained: QLoRA, LoRA or full."""
    if plan.quantization is not BaseBits.NONE:
        return "QLoRA"
    return "LoRA" if plan.lora else "full"


def group_of(score: Score) -> str:
    """The card, and the kind of plan."""
    return f"{score.source.machine.partition(',')[0]}, {kind_of(score.row.plan)}"


def summary(scores: Sequence[Score]) -> Iterator[str]:
    """The lines that `python -m validation real` prints."""
    yield f"{'':<34}{'rows':>6}{'median':>9}{'p90':>9}{'worst':>9}{'left':>9}{'p90':>9}"
    for title, figures in KINDS.items():
        chosen = [item for item in scores if item.figure in figures]
        yield _line(title, chosen)
        for group in _groups(chosen):
            yield _line(f"  {group}", [item for item in chosen if group_of(item) == group])
    yield from coverage(held_or_not(scores))
    beyond = [item for item in scores if abs(item.error) > LISTED]
    yield f"\noff by more than {LISTED:.0%}: {len(beyond)} of {len(scores)}"
    yield from map(_listed, sorted(beyond, key=lambda item: (group_of(item), -abs(item.error))))


def held_or_not(scores: Sequence[Score]) -> list[Score]:
    """Of each step what the driver showed or, less the context, what the allocator reserved.

    Where the source does not say what was read, the range cannot be tried.
    """
    figures = (Figure.USED, Figure.OF_ALLOCATOR, Figure.RESERVED)
    steps = {id(item.row): item for item in scores if item.figure in figures}
    return [*steps.values()]


def _groups(chosen: Sequence[Score]) -> list[str]:
    return sorted({group_of(item) for item in chosen})


def _line(title: str, chosen: Sequence[Score]) -> str:
    errors, left = [item.error for item in chosen], [item.left for item in chosen]
    values = (median(errors), most(errors), max(errors, key=abs), median(left), most(left))
    return f"{title:<34}{len(chosen):>6}" + "".join(f"{100 * value:>9.2f}" for value in values)


def coverage(chosen: Sequence[Score]) -> Iterator[str]:
    """Shares of steps whose memory is in the stated range, and its median width.

    `known` is the share once the known differences between the programs are taken off.
    """
    yield f"\n{'stated range':<34}{'rows':>6}{'held':>9}{'known':>9}{'width':>9}"
    for group in ("all", "without 2021 and 2022", *_groups(chosen)):
        found = [item for item in chosen if _is_in(item, group)]
        held, known = (
            100 * sum(flags) / len(found)
            for flags in (
                [item.is_held for item in found],
                [item.is_held_as_counted for item in found],
            )
        )
        width = median(item.answer.high / item.answer.low - 1 for item in found)
        yield f"{group:<34}{len(found):>6}{held:>8.0f}%{known:>8.0f}%{100 * width:>8.1f}%"


def _is_in(score: Score, group: str) -> bool:
    match group:
        case "all":
            return True
        case "without 2021 and 2022":
            return score.source.key not in BEFORE_2
        case _:
            return group_of(score) == group


def _listed(score: Score) -> str:
    words = f"{score.source.key}: {score.row.words}"
    causes = ", ".join(reasons(score)) or "unexplained"
    return f"{100 * score.error:+8.2f}  {score.figure.value:<12} {words:<58} {causes}"


def reasons(score: Score) -> Iterator[str]:
    """Known differences with their shares of the figure, and what they leave."""
    for key, share in score.differences.items():
        yield f"{CAUSES[key].title} {100 * share:+.1f}"
    if score.differences:
        yield f"left {100 * score.left:+.1f}"
