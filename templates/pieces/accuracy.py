"""The calculator's peaks beside the measured steps: errors by device and family."""

from dataclasses import dataclass
from functools import cache

from templates.pieces.comparisons import comparisons_on, scores
from templates.pieces.families import by_family
from validation import hopper
from validation.compare import NEARLY_EXACT, Comparison, spread
from validation.published_rows import Figure
from validation.scoreboard import Score, median, sources

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
    """Steps measured on a real card: its name, how many, and how near the answers are.

    Attributes:
        median: error of allocated bytes; `worst` is the largest one.
        reserved: median error of the bytes that PyTorch's allocator reserves.
        held: the steps for which the stated range holds what the driver showed.
    """

    card: str
    count: int
    median: str
    worst: str
    reserved: str
    held: int


@cache
def on_card() -> OnCard:
    """The T4's steps, which others measured."""
    allocated, reserved, used = _scores_of([sources()[0].key])
    return OnCard(
        "Tesla T4",
        len(allocated),
        _percent(median(score.error for score in allocated)),
        _percent(max(abs(score.error) for score in allocated)),
        _percent(median(score.error for score in reserved)),
        sum(score.is_held for score in used),
    )


@dataclass(frozen=True, slots=True)
class OnOurCards:
    """Steps that we measured: how many, and median errors of allocated and reserved bytes."""

    count: int
    allocated: str
    reserved: str


@cache
def on_our_cards() -> OnOurCards:
    """The H100's and the H200's steps."""
    allocated, reserved, _ = _scores_of([*hopper.TITLES])
    errors = (median(score.error for score in chosen) for chosen in (allocated, reserved))
    return OnOurCards(len(allocated), *map(_percent, errors))


def _scores_of(keys: list[str]) -> list[list[Score]]:
    """The scores of some sources: allocated and reserved bytes, and those the driver showed."""
    return [
        [score for score in scores() if score.source.key in keys and score.figure is figure]
        for figure in (Figure.ALLOCATED, Figure.OF_ALLOCATOR, Figure.USED)
    ]


def _percent(error: float) -> str:
    return f"{100 * error:.2f}\N{NO-BREAK SPACE}%"


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
    figures = map(_percent, (errors.median, errors.ninetieth, errors.worst))
    nearly_exact = sum(abs(item.error) < NEARLY_EXACT for item in comparisons)
    return Accuracy(name, errors.count, nearly_exact, *figures)


def signed_percent(error: float) -> str:
    """A relative error with its sign and about three digits."""
    digits = 2 if abs(error) < 0.1 else 1 if abs(error) < 1 else 0
    return f"{100 * error:+.{digits}f}\N{NO-BREAK SPACE}%"
