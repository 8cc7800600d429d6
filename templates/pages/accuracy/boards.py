"""Figures of real cards beside the calculator's answers: a chart, sentences, a table per source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from calculator.units import format_bytes
from templates.pieces.comparisons import scores
from validation import hopper
from validation.causes import CAUSES, Cause
from validation.error_figure import draw
from validation.published_rows import Figure, Row, Source
from validation.real import BEFORE_2, held_or_not
from validation.scoreboard import (
    TARGET_MEDIAN,
    TARGET_MOST,
    Score,
    median,
    most,
    sources,
)
from validation.simumax import REASONS, cases, measured, with_reason

LEAST_SHOWN = 0.005  # a known difference below this share of the figure is left out of its cell
UNKNOWN = "rest unknown"
COLUMNS = ["Step", "Published", "Ours", "Error", "Known differences", "Rest"]
NOT_COUNTED = ["Steps", "Cases", "Measured, GiB", "Reason"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of some figures: how many, median, what 90 % do not exceed, and the largest."""

    count: int
    median: str
    most: str
    worst: str

    @property
    def cells(self) -> list[object]:
        """The row of a table, without `most`."""
        return [self.count, self.median, self.worst]


@dataclass(frozen=True, slots=True)
class Board:
    """One source with its rows as cells, and the commands for ours."""

    source: Source
    columns: list[str]
    rows: list[list[str]]
    summary: Summary

    @property
    def commands(self) -> list[str]:
        """One command per row that has one."""
        return [row.command for row in self.source.rows if not row.by_hand]


def summary(chosen: Sequence[Score], left: bool = False) -> Summary:
    """The errors in words, or those that are `left` by known differences."""
    errors = [score.left if left else score.error for score in chosen]
    worst = _signed(max(errors, key=abs))
    return Summary(len(errors), _percent(median(errors)), _percent(most(errors)), worst)


def of_figure(source: Source, figure: Figure) -> list[Score]:
    """The scores of one figure of a source."""
    return [score for score in scores() if score.source is source and score.figure is figure]


def boards() -> list[Board]:
    """All sources."""
    return [
        _of_steps(source) if source.rows[0].more else _of_figures(source) for source in sources()
    ]


def _of_figures(source: Source) -> Board:
    """One figure per step, with the reasons for its error."""
    columns = [*COLUMNS, source.others] if source.others else COLUMNS
    own = of_figure(source, source.figure)
    return Board(source, columns, [_cells(score) for score in own], summary(own))


def _of_steps(source: Source) -> Board:
    """Several figures per step, each beside its error and what known differences leave of it."""
    figures = (source.figure, *source.rows[0].more)
    words = ("Error", "Rest") if source.differs else ("Error",)
    columns = ["Step", *(word for figure in figures for word in (figure.heading, *words))]
    found = [of_figure(source, figure) for figure in figures]
    rows = [
        [row.words, *(cell for score in steps for cell in _pair(score))]
        for row, *steps in zip(source.rows, *found, strict=True)
    ]
    return Board(source, columns, rows, summary(found[0]))


def _pair(score: Score) -> Iterator[str]:
    yield from (format_bytes(score.measured), _signed(score.error))
    if score.source.differs:
        yield _signed(score.left)


def _cells(score: Score) -> list[str]:
    cells = [
        score.row.words,
        score.row.shown(score.measured),
        score.row.shown(score.ours),
        _signed(score.error),
        "; ".join(_reasons(score)) or "\N{EN DASH}",
        _signed(score.left),
    ]
    return [*cells, _other(score.row)] if score.source.others else cells


def _other(row: Row) -> str:
    """The error of the source's own calculator."""
    return _signed(float(row.other) / float(row.printed) - 1)


def not_counted() -> list[list[object]]:
    """SimuMax's other cases, by the reason why they are not counted."""
    return [
        [
            reason.title,
            len(with_reason(key)),
            ", ".join(case.allocated for case in measured(key)),
            reason.words,
        ]
        for key, reason in REASONS.items()
    ]


def _reasons(score: Score) -> Iterator[str]:
    """Known differences with their shares; and if much remains, that it does."""
    for key, share in score.differences.items():
        if abs(share) >= LEAST_SHOWN:
            yield f"{CAUSES[key].title} {_signed(share)}"
    if not score.is_explained:
        yield UNKNOWN


def causes() -> list[Cause]:
    """The causes that a row names."""
    used = {key for source in sources() for key in source.differs}
    return [cause for key, cause in CAUSES.items() if key in used]


def figure() -> str:
    """The errors as a drawing, one strip for each figure of a source."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for score in scores():
        title = score.source.title
        if score.source.key in hopper.TITLES and score.figure is Figure.USED:
            continue  # one strip less of some hundred points: the driver's adds a constant
        if score.source.rows[0].more:
            title = f"{title}: {score.figure.value}"
        groups.setdefault(title, []).append((score.row.words, score.error))
    return draw(groups, TARGET_MEDIAN, TARGET_MOST)


def cards() -> dict[str, object]:
    """The names that the page uses for figures of real cards."""
    first, *rest = sources()
    ours = [source for source in rest if source.key in hopper.TITLES]
    others = [source for source in rest if source not in ours]
    used = of_figure(first, Figure.USED)
    tried = of_figure(ours[-1], Figure.USED)
    published = [s for s in scores() if s.source in others and s.figure.is_allocated]
    widths = [score.answer.high / score.answer.low - 1 for score in used]
    return {
        "allocated": summary(of_figure(first, Figure.ALLOCATED)),
        "reserved": summary(of_figure(first, Figure.OF_ALLOCATOR)),
        "held": sum(score.is_held for score in used),
        "width": _percent(median(widths), 0),
        "ours": summary([s for source in ours for s in of_figure(source, Figure.ALLOCATED)]),
        "our_reserved": summary(
            [s for source in ours for s in of_figure(source, Figure.OF_ALLOCATOR)]
        ),
        "tried": {
            is_lora: _shares(s for s in tried if bool(s.row.plan.lora) is is_lora)
            for is_lora in (True, False)
        },
        "elsewhere": _held(lambda source: source not in (first, *ours, *_before_2())),
        "before": _held(lambda source: source in _before_2()),
        "by_hand": sum(row.by_hand for row in first.rows),
        "published": summary(published),
        "published_left": summary(published, left=True),
        "figures": len(scores()),
        "boards": boards(),
        "causes": causes(),
        "figure": figure(),
        "targets": (_percent(TARGET_MEDIAN, 0), _percent(TARGET_MOST, 0)),
        "not_counted": not_counted(),
        "not_counted_columns": NOT_COUNTED,
        "cases": len(cases()),
        "compared": len(with_reason("")),
        "runs": len({case.measured_as for case in cases()}),
    }


def _before_2() -> list[Source]:
    return [source for source in sources() if source.key in BEFORE_2]


def _held(is_chosen: Callable[[Source], bool]) -> tuple[int, int]:
    """The number of steps of some sources that the stated range holds, and of all of them.

    Known differences are taken off.
    """
    return _shares(score for score in held_or_not(scores()) if is_chosen(score.source))


def _shares(chosen: Iterable[Score]) -> tuple[int, int]:
    found = [score.is_held_as_counted for score in chosen]
    return sum(found), len(found)


def _percent(error: float, digits: int = 2) -> str:
    return f"{100 * error:.{digits}f}\N{NO-BREAK SPACE}%"


def _signed(error: float) -> str:
    return f"{100 * error:+.1f}\N{NO-BREAK SPACE}%"
