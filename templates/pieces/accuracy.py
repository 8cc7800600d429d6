"""The calculator's peaks beside the measured steps: errors by device, family and option."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from calculator.plan import Plan
from calculator.units import format_bytes
from templates.pieces.comparisons import Recorded, comparisons_on, scores
from templates.pieces.families import by_family
from validation import hopper
from validation.compare import NEARLY_EXACT, Comparison, spread
from validation.published_rows import Figure
from validation.rows import read_rows
from validation.scoreboard import Score, median, sources

WORST_SHOWN = 5
# attributes of a device that are groups of its steps
GROUPED = ("families", "techniques", "cards")
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
class Device:
    """The steps measured on one device, in groups."""

    words: str
    families: list[Accuracy]
    techniques: list[Accuracy]
    statics_exact: int
    phases_right: int
    phases_exact: int
    worst: list[tuple[str, str, str]]
    versions: str
    left_out: int
    cards: list[Accuracy]

    @property
    def count(self) -> int:
        """Number of compared steps."""
        return self.families[0].count


@cache
def devices() -> list[Device]:
    """All devices with measurements."""
    return MEASURED.results()


def _measured() -> list[str]:
    return [name for name in DEVICES if next(read_rows(name), None)]


def _device(name: str) -> Device:
    comparisons = comparisons_on(name)
    families = [accuracy_of(title, members) for title, members in by_family(comparisons)]
    return Device(
        words=DEVICES[name],
        families=[accuracy_of("All", comparisons), *families],
        techniques=_techniques(comparisons),
        statics_exact=sum(not any(item.static_errors().values()) for item in comparisons),
        phases_right=sum(item.phase_is_right for item in comparisons),
        phases_exact=sum(not item.phases_beyond() for item in comparisons),
        worst=[
            (item.row["command"], signed_percent(item.error), format_bytes(item.measured))
            for item in sorted(comparisons, key=lambda item: -abs(item.error))[:WORST_SHOWN]
        ],
        versions=", ".join(_versions(comparisons)),
        left_out=len(list(read_rows(name))) - len(comparisons),
        cards=by_card(comparisons),
    )


def by_card(comparisons: Sequence[Comparison]) -> list[Accuracy]:
    """One group for each graphics card, driver and version of PyTorch that rows come from."""
    groups: dict[str, list[Comparison]] = {}
    for item in comparisons:
        if gpu := item.row.get("gpu"):
            words = f"{gpu['card']}, driver {gpu['driver'] or 'unknown'}, CUDA {gpu['cuda']}"
            torch = item.row["versions"]["torch"]
            groups.setdefault(f"{words}, PyTorch {torch}", []).append(item)
    return [accuracy_of(words, members) for words, members in sorted(groups.items())]


def _techniques(comparisons: Sequence[Comparison]) -> list[Accuracy]:
    """One group per value of each option; a step can be in several groups."""
    groups: dict[str, list[Comparison]] = {}
    for item in comparisons:
        for name in item.techniques():
            groups.setdefault(name, []).append(item)
    order = ["defaults", *Plan.options()]
    return [
        accuracy_of(_in_words(name), groups[name])
        for name in sorted(groups, key=lambda name: (_place(name.split("=")[0], order), name))
    ]


def _place(field: str, order: list[str]) -> int:
    return order.index(field) if field in order else len(order)


def _in_words(technique: str) -> str:
    """`optimizer=adam` as a command-line option; empty for defaults."""
    field, _, value = technique.partition("=")
    name = field.replace("_", "-")
    match value:
        case "":
            return "The defaults"
        case "True":
            return f"--{name}"
        case "False" if field == "tied_embeddings":
            return "--untied-embeddings"
        case "False":
            return f"--no-{name}"
        case _:
            return f"--{name} {value}"


def _versions(comparisons: Iterable[Comparison]) -> list[str]:
    """Each library's version once, without `oracle`."""
    found = {
        f"{name} {version}"
        for item in comparisons
        for name, version in item.row["versions"].items()
        if name not in ("oracle", "python")
    }
    return sorted(found)


def _loaded(found: dict[str, Any]) -> Device:
    groups = {name: [Accuracy(**each) for each in found[name]] for name in GROUPED}
    return Device(**found | groups)


MEASURED = Recorded("measured", _device, _measured, load=_loaded)


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
