"""A published figure beside ours, and how far the two agree."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from calculator.catalog import SOURCES
from calculator.catalog.sources import Source


class Outcome(StrEnum):
    """Degrees of agreement between a published figure and ours."""

    SAME = "to the printed digit"
    CUT = "cut off, not rounded"
    CLOSE = "close"
    OTHER = "differs"
    IMPOSSIBLE = "more than the hardware can compute"


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure beside ours.

    Attributes:
        words: what it is.
        published: the figure as printed, digits and a decimal point only.
        ours: what the calculator computes.
        unit: follows both, with its space.
        margin: a difference that the figure's own rounding explains.
        note: why they differ, or where the publication rounds.
    """

    words: str
    published: str
    ours: float
    unit: str = ""
    margin: float = 0.0
    note: str = ""

    @property
    def digits(self) -> int:
        """Printed digits behind the point."""
        return len(self.published.partition(".")[2])

    @property
    def difference(self) -> float:
        """Ours less the published figure."""
        return self.ours - float(self.published)

    @property
    def outcome(self) -> Outcome:
        """Agreement of the two; an error in a float's own last digit is no difference."""
        unit = 10.0**-self.digits
        tiny = 1e-9 * max(1.0, abs(self.ours))
        if abs(self.difference) <= unit / 2 + tiny:
            return Outcome.SAME
        if 0 <= self.difference < unit:
            return Outcome.CUT
        return Outcome.CLOSE if abs(self.difference) <= self.margin else Outcome.OTHER

    @property
    def cells(self) -> list[str]:
        """The row of a table."""
        ours = f"{self.ours:,.{self.digits + 1}f}"
        printed = f"{float(self.published):,.{self.digits}f}"
        return [self.words, printed + self.unit, ours + self.unit, self.verdict]

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        words = self.outcome.value
        if self.outcome in (Outcome.CLOSE, Outcome.OTHER):
            words = f"{words}: {self.difference / float(self.published):+.1%}"
        return f"{words}. {self.note}".removesuffix(". ")


COLUMNS = ("Figure", "Published", "Ours", "Verdict")


@dataclass(frozen=True, slots=True)
class Topic:
    """Figures of one publication, or of one table of it.

    Attributes:
        title: a heading.
        source: its key in the catalog; empty where there is no lasting address.
        words: what was published and which formula gives ours.
        claims: the figures.
        rows: what the page shows of them, where it is not each claim's cells.
        columns: the headings of `rows`.
    """

    title: str
    source: str
    words: str
    claims: tuple[Claim, ...]
    rows: tuple[list[str], ...] = ()
    columns: tuple[str, ...] = COLUMNS

    @property
    def publication(self) -> Source | None:
        """The publication with the figures."""
        return SOURCES[self.source] if self.source else None

    @property
    def shown(self) -> list[list[str]]:
        """The rows of its table."""
        return list(self.rows) or [claim.cells for claim in self.claims]


def outcomes(topics: Iterable[Topic]) -> Counter[Outcome]:
    """Number of figures with each outcome."""
    return Counter(claim.outcome for topic in topics for claim in topic.claims)
