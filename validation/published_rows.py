"""Published figures as data: what was read, a step with the calculator's options, and a source."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from calculator.architecture import Architecture
from calculator.cards import find_card
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Report
from calculator.units import GiB, MiB
from validation.answers import Answer, answer
from validation.by_hand import repeated_by_hand
from validation.subject import find_subject

UNITS: Final = {"GB": 10**9, "GiB": GiB, "MiB": MiB, "B": 1}


class Figure(StrEnum):
    """Meaning of a published figure."""

    ALLOCATED = "allocated"
    ACTIVE = "active"
    RESERVED = "nvidia-smi, less the context"
    OF_ALLOCATOR = "reserved"
    USED = "nvidia-smi"
    NOT_SAID = "not said"

    @property
    def words(self) -> str:
        """A sentence that says it."""
        return {
            Figure.ALLOCATED: "The figures are bytes that PyTorch allocated.",
            Figure.ACTIVE: "The figures are PyTorch's active bytes, almost those allocated.",
            Figure.RESERVED: "The figures are nvidia-smi's, without the context.",
            Figure.OF_ALLOCATOR: "The figures are bytes that PyTorch's allocator reserved.",
            Figure.USED: "The figures are nvidia-smi's for the process.",
            Figure.NOT_SAID: "The source does not say what was read; it looks like nvidia-smi's.",
        }[self]

    @property
    def heading(self) -> str:
        """A heading for a column."""
        return {
            Figure.ALLOCATED: "Allocated",
            Figure.ACTIVE: "Active",
            Figure.RESERVED: "nvidia-smi",
            Figure.OF_ALLOCATOR: "Reserved",
            Figure.USED: "nvidia-smi",
            Figure.NOT_SAID: "Published",
        }[self]

    def of(self, answer: Answer) -> int:
        """Ours, in bytes."""
        match self:
            case Figure.ALLOCATED | Figure.ACTIVE:
                return answer.allocated
            case Figure.OF_ALLOCATOR | Figure.RESERVED:
                return answer.reserved
            case Figure.USED | Figure.NOT_SAID:
                return answer.used
            case other:
                assert_never(other)

    @property
    def is_allocated(self) -> bool:
        """True for what tensors take."""
        return self in (Figure.ALLOCATED, Figure.ACTIVE)


@dataclass(frozen=True, slots=True)
class Row:
    """One published step: its figure as printed, and the calculator's options.

    `other` is the answer of the source's own calculator as printed; empty where it has none. `more`
    has what else was read of the same step. Where the program repeats keys and values `by_hand`, no
    command of ours asks for the step.
    """

    words: str
    model: str
    options: Mapping[str, str]
    printed: str
    unit: str
    other: str = ""
    more: Mapping[Figure, str] = field(default_factory=dict)
    by_hand: bool = False

    @property
    def bytes(self) -> int:
        """The published figure."""
        return self.in_bytes(self.printed)

    def in_bytes(self, printed: str) -> int:
        """A figure of this row as a number."""
        return round(float(printed) * UNITS[self.unit])

    def shown(self, size: int) -> str:
        """Bytes in the published figure's unit, with as many digits."""
        digits = len(self.printed.partition(".")[2])
        return f"{size / UNITS[self.unit]:,.{digits}f} {self.unit}"

    @property
    def architecture(self) -> Architecture:
        """The model's shape."""
        return find_subject(self.model, None).architecture

    @property
    def plan(self) -> Plan:
        """The options as a plan."""
        return Plan.parse(self.options)

    @property
    def report(self) -> Report:
        """The calculator's answer to the same options."""
        with self.shape as shape:
            return estimate(shape, self.plan)

    def answer(self, card: str, expandable: bool) -> Answer:
        """The answer for a card, and for segments of PyTorch's allocator that are `expandable`."""
        with self.shape as shape:
            return answer(shape, self.plan, find_card(card), expandable)

    @property
    def shape(self) -> AbstractContextManager[Architecture]:
        """The model's shape, of a type that repeats keys by hand if the program does."""
        shape = self.architecture
        return repeated_by_hand(shape) if self.by_hand else nullcontext(shape)

    @property
    def command(self) -> str:
        """The command line for the row."""
        words = (_argument(name, value) for name, value in self.options.items())
        return " ".join(("python -m calculator estimate", self.model, *words))


@dataclass(frozen=True, slots=True)
class Source:
    """Figures that were measured alike, published in one place.

    `addresses` are the published files by name; `card` is a name of `calculator.cards`; `assumed`
    and `left_out` are sentences; `differs` names the causes that are counted for all rows. `others`
    is a calculator whose answers the source has beside its figures. A model that `is_classifier`
    scores two classes. PyTorch's allocator may have `expandable` segments.
    """

    key: str
    title: str
    addresses: Mapping[str, str]
    machine: str
    card: str
    figure: Figure
    assumed: tuple[str, ...]
    left_out: tuple[str, ...]
    rows: tuple[Row, ...]
    differs: tuple[str, ...] = ()
    others: str = ""
    is_classifier: bool = False
    expandable: bool = False


def _argument(name: str, value: str) -> str:
    """An option on the command line."""
    words = name.replace("_", "-")
    match value:
        case "True":
            return f"--{words}"
        case "False":
            return f"--un{words}" if name.startswith("tied") else f"--no-{words}"
        case _:
            return f"--{words} {value}"
