"""The calculator's peaks beside the measured steps: errors by device and family."""

from dataclasses import dataclass
from functools import cache

from templates.pieces.comparisons import comparisons_on, scores
from templates.pieces.families import by_family
from validation import hopper
from validation.compare import NEARLY_EXACT, Comparison, spread
from validation.published_rows import Figure
from validation.scoreboard import median, sources

# What the rows in validation/measurements were measured on.
DEVICES = {
    "counting": "PyTorch's own code on a simulated GPU that only counts memory",
    "cuda": "a real GPU",
    "cpu": "a processor",
}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Relative errors of the peak in one group of measured steps, as percentages."""

    name: str
    count: int
    nearly_exact: int
    median: str
    ninetieth: str
    worst: str

    @property
    def cells(self) -> list[object]:
        """The row of a table, its heading first."""
        errors = [self.median, self.ninetieth, self.worst]
        return [self.name, f"{self.count:,}", self.nearly_exact, *errors]


@dataclass(frozen=True, slots=True)
class OnCard:
    """Steps measured on a real card: its name, how many, and errors of allocated bytes."""

    card: str
    count: int
    median: str
    worst: str


@cache
def on_card() -> OnCard:
    """The T4's steps, which others measured."""
    found = [s for s in scores() if s.source is sources()[0] and s.figure is Figure.ALLOCATED]
    errors = [score.error for score in found]
    shares = (median(errors), max(map(abs, errors)))
    return OnCard("Tesla T4", len(found), *(f"{100 * x:.2f}\N{NO-BREAK SPACE}%" for x in shares))


@dataclass(frozen=True, slots=True)
class OnOurCards:
    """Steps that we measured: how many, and median errors of allocated and reserved bytes."""

    count: int
    allocated: str
    reserved: str


@cache
def on_our_cards() -> OnOurCards:
    """The H100's and the H200's steps."""
    found = [score for score in scores() if score.source.key in hopper.TITLES]
    errors = [
        [score.error for score in found if score.figure is figure]
        for figure in (Figure.ALLOCATED, Figure.OF_ALLOCATOR)
    ]
    return OnOurCards(
        len(errors[0]), *(f"{100 * median(x):.2f}\N{NO-BREAK SPACE}%" for x in errors)
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """The steps measured on one device: all together, then each family."""

    device: str
    rows: list[Accuracy]


@cache  # some hundred steps, asked for by two pages
def accuracy() -> list[Measured]:
    """The calculator beside the measured rows of each device."""
    found = []
    for device, words in DEVICES.items():
        comparisons = comparisons_on(device)
        if not comparisons:
            continue
        rows = [accuracy_of("All", comparisons)]
        rows += [accuracy_of(title, members) for title, members in by_family(comparisons)]
        found.append(Measured(words, rows))
    return found


def accuracy_of(name: str, comparisons: list[Comparison]) -> Accuracy:
    """The errors of one group, at least one step, as a row of a table."""
    errors = spread([item.error for item in comparisons])
    figures = (
        f"{100 * error:.2f}\N{NO-BREAK SPACE}%"
        for error in (errors.median, errors.ninetieth, errors.worst)
    )
    nearly_exact = sum(abs(item.error) < NEARLY_EXACT for item in comparisons)
    return Accuracy(name, errors.count, nearly_exact, *figures)


def signed_percent(error: float) -> str:
    """A relative error with its sign and about three digits."""
    digits = 2 if abs(error) < 0.1 else 1 if abs(error) < 1 else 0
    return f"{100 * error:+.{digits}f}\N{NO-BREAK SPACE}%"
