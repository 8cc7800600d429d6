"""A run of volunteers: their GPUs, their model and their exchange of gradients -> Run.

Each option is declared once, at its field in `Run`; its words are in `run.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, Self

from calculator.cards import CARDS, COMMON
from calculator.configuration import LONGEST_SEQUENCE, MOST_LAYERS
from calculator.data import read_data
from calculator.errors import InputError, unknown_name
from calculator.options import (
    Option,
    choice,
    counts,
    counts_in,
    flag,
    integer,
    number,
    options_of,
)
from calculator.planner.communicate import Way
from calculator.planner.compute import Recomputation

MOST_VOLUNTEERS: Final = 10_000
_TITLES: Final = {gpu.name: gpu.title for gpu in COMMON}


class Compression(StrEnum):
    """Ways to compress gradients before they are sent."""

    NONE = "32"
    HALF = "16"
    EIGHT = "8"
    LOW_RANK = "powersgd"
    SPARSE = "sparse"


@dataclass(frozen=True, slots=True)
class Kind:
    """Volunteers who have the same GPU.

    Attributes:
        card: the GPU's name on the list, or "other".
        title: the same in words.
        volunteers: how many they are.
        peak_flops: peak rate of one GPU in FLOP/s.
        watts: power of one GPU.
    """

    card: str
    title: str
    volunteers: int
    peak_flops: float
    watts: float


@dataclass(frozen=True, slots=True)
class Run:
    """One choice for every option; None stands for the model's or the card's own value."""

    parameters: int | None = integer(None, 10**15)
    layers: int | None = integer(None, MOST_LAYERS)
    width: int | None = integer(None, 10**6)
    sequence_length: int | None = integer(None, LONGEST_SEQUENCE)
    sharing_groups: int | None = integer(None, MOST_LAYERS)
    billion_tokens: float = number(1.0, 1e9, least=1e-6)
    volunteers: int = integer(20, MOST_VOLUNTEERS)
    hours: float = number(12.0, 1e6, least=0.01)
    gpu: str = choice("t4", {**_TITLES, "other": "Another: its peak rate"})
    teraflops: float | None = number(None, 1e6, least=0.001)
    more_gpus: str | None = counts(None, _TITLES, MOST_VOLUNTEERS)
    gpus_each: int = integer(1, 10_000)
    utilization: float | None = number(None, 1e6, least=0.01)
    recomputation: Recomputation = choice(Recomputation.NONE, Recomputation)
    up: float = number(50.0, 1e6, least=0.001)
    down: float = number(50.0, 1e6, least=0.001)
    round_trip: float = number(100.0, 60_000)
    way: Way = choice(Way.ALL_REDUCE, Way)
    target_batch: int = integer(4096, 10**8)
    local_steps: int = integer(1, 100_000)
    compression: Compression = choice(Compression.EIGHT, Compression)
    rank: int = integer(4, 65_536)
    kept: int = integer(64, 10**6)
    block: int = integer(4096, 10**6)
    value_bits: int = integer(2, 32)
    overlap: bool = flag(False)
    watts: float | None = number(None, 1e5)
    overhead: float = number(1.1, 10, least=1)
    kilograms_per_kwh: float = number(0.385, 10)
    dollars_per_hour: float = number(0.0, 1e4)
    failures: float = number(1.4, 100)

    def __post_init__(self) -> None:
        """Read every option, and refuse what no run can be."""
        for name, option in _OPTIONS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, option.parse(value))
        if self.hours > 24:
            raise InputError("hours", self.hours, "must be at most 24")
        if self.utilization is not None and self.utilization > 100:
            rule = "must be at most 100: no GPU computes more than its peak rate"
            raise InputError("utilization", self.utilization, rule)
        if self.gpu == "other" and self.teraflops is None:
            raise InputError("teraflops", "", "must be given for a GPU that is not on the list")
        if self.everyone > MOST_VOLUNTEERS:
            rule = f"must leave at most {MOST_VOLUNTEERS:,} volunteers in all"
            raise InputError("more_gpus", self.more_gpus, rule)

    @staticmethod
    def options() -> Mapping[str, Option]:
        """The options by their fields' names, in the fields' order."""
        return _OPTIONS

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> Self:
        """A run from texts or values by field name; absent, None and '' mean the default.

        Raises:
            InputError: if a field does not exist or a value is out of range.
        """
        for name in options:
            if name not in _OPTIONS:
                raise unknown_name("option", name, _OPTIONS)
        given: dict[str, Any] = {
            name: value for name, value in options.items() if value not in (None, "")
        }
        return cls(**given)

    def changed(self) -> dict[str, object]:
        """The options that differ from the defaults."""
        values = {item.name: (getattr(self, item.name), item.default) for item in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def peak_flops(self) -> float:
        """Peak rate of one GPU in FLOP/s."""
        card = CARDS.get(self.gpu)
        return 1e12 * (card.teraflops if card else self.teraflops or 0.0)

    @property
    def gpu_watts(self) -> float:
        """Power of one GPU: the given value, or else the card's limit."""
        card = CARDS.get(self.gpu)
        return self.watts if self.watts is not None else float(card.watts if card else 0)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Everyone, by their GPU: those of `gpu` first."""
        card = CARDS.get(self.gpu)
        title = card.title if card else f"{self.teraflops:g} TFLOP/s"
        first = Kind(self.gpu, title, self.volunteers, self.peak_flops, self.gpu_watts)
        others = ((CARDS[name], int(number)) for name, number in counts_in(self.more_gpus or ""))
        return (
            first,
            *(
                Kind(gpu.name, gpu.title, number, 1e12 * gpu.teraflops, float(gpu.watts))
                for gpu, number in others
            ),
        )

    @property
    def everyone(self) -> int:
        """Number of volunteers, whatever their GPU."""
        return sum(kind.volunteers for kind in self.kinds)

    @property
    def online(self) -> int:
        """Volunteers who compute at the same time, on average."""
        return max(1, round(self.everyone * self.hours / 24))


_OPTIONS: Final[Mapping[str, Option]] = options_of(Run, read_data("planner/run.json"))
