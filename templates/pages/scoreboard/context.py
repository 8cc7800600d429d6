"""Data for 'Scoreboard': published measurements on real GPUs beside the calculator's answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from validation.causes import CAUSES, Cause
from validation.error_figure import draw
from validation.scoreboard import (
    TARGET_MEDIAN,
    TARGET_MOST,
    Row,
    Score,
    Source,
    median,
    most,
    scores,
    sources,
)
from validation.simumax import REASONS, cases, measured, with_reason

LEAST_SHOWN = 0.005  # a known difference below this share of the figure is left out of its cell
UNKNOWN = "the rest unknown"
COLUMNS = ["Step", "Published", "Ours", "Error", "Known differences", "Left"]
NOT_COUNTED = ["Steps", "Cases", "Measured, GiB", "Reason"]


@dataclass(frozen=True, slots=True)
class Board:
    """One source with its rows as cells, and the commands for ours."""

    source: Source
    rows: list[list[str]]
    summary: "Summary"
    worst: str
    left: "Summary"

    @property
    def columns(self) -> list[str]:
        """The headings of its rows."""
        return [*COLUMNS, self.source.others] if self.source.others else COLUMNS

    @property
    def cells(self) -> list[object]:
        """A row of the table of sources."""
        own = self.summary
        link = f'<a href="#{self.source.key}">{self.source.title}</a>'
        return [link, own.count, own.median, self.worst, self.left.median]

    @property
    def commands(self) -> list[str]:
        """One command per row."""
        return [row.command for row in self.source.rows]


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of some rows: how many, median, and what 90 % do not exceed."""

    count: int
    median: str
    most: str
    within_median: int
    within_most: int


def summary(errors: Sequence[float]) -> Summary:
    """The errors in words."""
    return Summary(
        len(errors),
        _percent(median(errors)),
        _percent(most(errors)),
        sum(abs(error) <= TARGET_MEDIAN for error in errors),
        sum(abs(error) <= TARGET_MOST for error in errors),
    )


def boards() -> list[Board]:
    """All sources."""
    found = []
    for source in sources():
        own = [score for score in scores() if score.source is source]
        rows = [_cells(score) for score in own]
        errors = [score.error for score in own]
        worst = _signed(max(errors, key=abs))
        found.append(Board(source, rows, summary(errors), worst, summary([s.left for s in own])))
    return found


def _cells(score: Score) -> list[str]:
    cells = [
        score.row.words,
        score.row.shown(score.row.bytes),
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
    """Known differences with their shares; those without one; and if much remains, that it does."""
    for key, share in score.differences.items():
        if abs(share) >= LEAST_SHOWN:
            yield f"{CAUSES[key].title} {_signed(share)}"
    if score.beyond:
        yield f"{CAUSES['reserved'].title} {_signed(-score.beyond / score.row.bytes)}"
    if not score.is_explained:
        unsized = [key for key in score.row.causes if key != "reserved"]
        yield from [CAUSES[key].title for key in unsized] or [UNKNOWN]


def causes() -> list[Cause]:
    """The causes that a row names."""
    used = {key for source in sources() for key in source.differs}
    used |= {key for source in sources() for row in source.rows for key in row.causes}
    return [cause for key, cause in CAUSES.items() if key in used]


def figure() -> str:
    """The errors as a drawing, one strip per source."""
    groups = {
        board.title: [(s.row.words, s.error) for s in scores() if s.source is board]
        for board in sources()
    }
    return draw(groups, TARGET_MEDIAN, TARGET_MOST)


def _percent(error: float, digits: int = 1) -> str:
    return f"{100 * error:.{digits}f}\N{NO-BREAK SPACE}%"


def _signed(error: float) -> str:
    return f"{100 * error:+.1f}\N{NO-BREAK SPACE}%"


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    allocated = [score for score in scores() if score.source.figure.is_allocated]
    return {
        "boards": boards(),
        "causes": causes(),
        "columns": COLUMNS,
        "figure": figure(),
        "allocated": summary([score.error for score in allocated]),
        "allocated_left": summary([score.left for score in allocated]),
        "everything": summary([score.error for score in scores()]),
        "not_counted": not_counted(),
        "not_counted_columns": NOT_COUNTED,
        "cases": len(cases()),
        "compared": len(with_reason("")),
        "runs": len({case.measured_as for case in cases()}),
        "targets": (_percent(TARGET_MEDIAN, 0), _percent(TARGET_MOST, 0)),
    }
