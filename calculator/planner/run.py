"""A run of volunteers: their GPUs, their model and their exchange of gradients -> Run.

Each option is declared once, at its field in `Run`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, Self

from calculator.cards import CARDS, COMMON
from calculator.configuration import LONGEST_SEQUENCE, MOST_LAYERS
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

    parameters: int | None = integer(
        None, 10**15, "Parameters", "Number of parameters of a model that is not on the list."
    )
    layers: int | None = integer(None, MOST_LAYERS, "Layers", "Number of layers of that model.")
    width: int | None = integer(
        None, 10**6, "Width", "Width of all of its attention heads together."
    )
    sequence_length: int | None = integer(
        None, LONGEST_SEQUENCE, "Sequence length", "Tokens per sequence."
    )
    sharing_groups: int | None = integer(
        None,
        MOST_LAYERS,
        "Sharing groups",
        "Distinct layers, used in turn. Sharing cuts traffic, not computing.",
    )
    billion_tokens: float = number(
        1.0, 1e9, "Tokens, in billions", "Tokens that the whole run trains on.", least=1e-6
    )
    volunteers: int = integer(20, MOST_VOLUNTEERS, "Volunteers", "People who have joined the run.")
    hours: float = number(
        12.0, 1e6, "Hours a day", "How long each volunteer computes per day.", least=0.01
    )
    gpu: str = choice(
        "t4",
        {gpu.name: gpu.title for gpu in COMMON} | {"other": "Another: its peak rate"},
        "GPU",
        "The card that each volunteer has.",
    )
    teraflops: float | None = number(
        None, 1e6, "Peak rate in TFLOP/s", "Of that GPU in 16 bits, without sparsity.", least=0.001
    )
    more_gpus: str | None = counts(
        None,
        "Volunteers with other GPUs",
        "They join those above, with the same hours and connections.",
        {gpu.name: gpu.title for gpu in COMMON},
        MOST_VOLUNTEERS,
    )
    gpus_each: int = integer(1, 10_000, "GPUs each", "GPUs per volunteer.")
    utilization: float | None = number(
        None,
        1e6,
        "Utilization in %",
        "Share of the peak rate that the model's own arithmetic reaches (MFU). Defaults to our "
        "timing model's estimate for this model on this card.",
        least=0.01,
    )
    recomputation: Recomputation = choice(
        Recomputation.NONE,
        {Recomputation.NONE: "none", Recomputation.FULL: "full: one more forward pass"},
        "Recomputation",
        "Recomputation counts toward hardware utilization, not model utilization.",
    )
    up: float = number(50.0, 1e6, "Upload in Mbit/s", "Upload rate of each volunteer.", least=0.001)
    down: float = number(
        50.0, 1e6, "Download in Mbit/s", "Download rate of each volunteer.", least=0.001
    )
    round_trip: float = number(
        100.0, 60_000, "Round trip in ms", "Time to another volunteer and back."
    )
    way: Way = choice(
        Way.ALL_REDUCE,
        {
            Way.ALL_REDUCE: "all-reduce: each averages a part",
            Way.ALL_GATHER: "all-gather: each sends to all others",
            Way.STORE: "store: upload once, download the others'",
            Way.ROUND: "round: all upload, then download",
        },
        "Way of exchange",
        "How gradients reach the other volunteers; all-reduce is hivemind's way.",
    )
    target_batch: int = integer(
        4096, 10**8, "Target batch", "Sequences per step, of all volunteers together."
    )
    local_steps: int = integer(
        1,
        100_000,
        "Local steps",
        "Steps that each volunteer takes before an exchange, as in DiLoCo.",
    )
    compression: Compression = choice(
        Compression.EIGHT,
        {
            Compression.NONE: "none: 32 bits",
            Compression.HALF: "16 bits",
            Compression.EIGHT: "8 bits",
            Compression.LOW_RANK: "PowerSGD: a low rank",
            Compression.SPARSE: "sparse: the largest of each block",
        },
        "Compression",
        "Of gradients; tensors with fewer than 65,536 elements keep at least 16 bits.",
    )
    rank: int = integer(4, 65_536, "Rank", "Rank of PowerSGD's two matrices.")
    kept: int = integer(
        64, 10**6, "Kept elements", "The largest elements of each block, which are sent."
    )
    block: int = integer(4096, 10**6, "Block", "Elements per block.")
    value_bits: int = integer(
        2, 32, "Bits of a kept value", "Plus the bits for its position in the block."
    )
    overlap: bool = flag(False, "Overlap", "Keep computing while gradients are exchanged.")
    watts: float | None = number(
        None, 1e5, "Power in W", "Power of one GPU; other kinds use their card's limit."
    )
    overhead: float = number(
        1.1,
        10,
        "Energy overhead",
        "Energy of the whole site divided by that of its GPUs (PUE).",
        least=1,
    )
    kilograms_per_kwh: float = number(
        0.385, 10, "CO2 in kg per kWh", "Carbon intensity of the grid; 0.385 is the US average."
    )
    dollars_per_hour: float = number(
        0.0, 1e4, "Price of a GPU hour", "In dollars; 0 if volunteers donate it."
    )
    failures: float = number(
        1.4,
        100,
        "Failures per month in %",
        "Chance that one GPU is interrupted; 1.4 was measured while Llama 3 was trained.",
    )

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


_OPTIONS: Final[Mapping[str, Option]] = options_of(Run)
