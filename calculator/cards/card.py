"""A graphics card, and families of cards that share what one declaration says."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from calculator.autograd.mode import AMPERE
from calculator.units import MiB

NVIDIA, AMD, APPLE = "NVIDIA", "AMD", "Apple"
# what a process has taken when its first tensor is there; no source that covers every card
ASSUMED_CONTEXT: Final = 300 * MiB
OTHER_ALLOCATOR: Final = (
    "The calculator counts the memory of PyTorch's CUDA allocator and CUDA's kernels; on this card "
    "PyTorch uses others, so the figures are estimates."
)


@dataclass(frozen=True, slots=True)
class Peaks:
    """Rates of matrix products in TFLOP/s, without sparsity; 0 where the card has no such units.

    Attributes:
        fp32: outside tensor cores.
        tf32: of 32-bit matrices rounded to TensorFloat-32.
        fp16: sums in 32 bits.
        bf16: sums in 32 bits.
    """

    fp32: float = 0.0
    tf32: float = 0.0
    fp16: float = 0.0
    bf16: float = 0.0


@dataclass(frozen=True, slots=True)
class Card:
    """A graphics card.

    Attributes:
        name: as on the command line; empty for a card that is given by its memory on the page.
        title: with the memory that its maker names.
        memory: bytes, as its driver reports them; of Apple's chips, what macOS lends the GPU.
        generation: its maker's name for the architecture.
        vendor: who makes the chip.
        capability: CUDA's compute capability; None outside CUDA.
        note: where it can be had.
        bandwidth: bytes that its memory moves in a second; 0 if unknown.
        peaks: rates of matrix products.
        watts: its maker's power limit, of laptops the highest; 0 if unknown.
        context: bytes that a process takes before its first tensor.
        context_source: who measured it, or 'assumed'.
        unified: True if GPU and processor share the memory.
        spellings: other names that tools and people have for it.
        source: address of what names its rates.
    """

    name: str
    title: str
    memory: int
    generation: str
    vendor: str = NVIDIA
    capability: tuple[int, int] | None = None
    note: str = ""
    bandwidth: float = 0.0
    peaks: Peaks = Peaks()
    watts: int = 0
    context: int = ASSUMED_CONTEXT
    context_source: str = "assumed"
    unified: bool = False
    spellings: tuple[str, ...] = ()
    source: str = ""

    @property
    def short(self) -> str:
        """The title without the memory that its maker names."""
        *name, number, unit = ["", "", *self.title.split()]
        sized = unit in ("GB", "GiB") and number.replace(".", "", 1).isdigit()
        return " ".join(name).strip().removesuffix(" with") if sized else self.title

    @property
    def teraflops(self) -> float:
        """Peak rate of 16-bit products, of a card that has no units for them the 32-bit rate."""
        return max(self.peaks.bf16, self.peaks.fp16) or self.peaks.fp32

    @property
    def predates_ampere(self) -> bool:
        """True for CUDA's cards without bfloat16, for which PyTorch has no flash attention."""
        return self.capability is not None and self.capability < AMPERE

    @property
    def caveat(self) -> str:
        """The caveat beside an answer for this card; empty for CUDA's cards."""
        return "" if self.vendor == NVIDIA else OTHER_ALLOCATOR


# name, title, MiB, GB/s, fp32 in TFLOP/s, watts
Row = tuple[str, str, int, float, float, int]
# formats whose rates follow from the 16-bit rate, with their share of it
_SHARES: Final = {"tf32": 0.5, "fp16": 1.0, "bf16": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Cards of one architecture, which differ in size and speed.

    Attributes:
        halves: 16-bit rate over 32-bit rate, where the family has one.
        formats: formats whose rates follow from the 16-bit rate, with their share of it.
        own_halves: 16-bit rates, by name, that do not follow from `halves`.
        spellings, notes: as in `Card`, by name.
    """

    title: str
    generation: str
    capability: Sequence[int] | None
    source: str
    rows: Sequence[Row]
    halves: float = 1.0
    formats: Mapping[str, float] = field(default_factory=lambda: _SHARES)
    vendor: str = NVIDIA
    unified: bool = False
    own_halves: Mapping[str, float] = field(default_factory=dict)
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def cards(self) -> Iterator[Card]:
        """The family's cards."""
        capability = (self.capability[0], self.capability[1]) if self.capability else None
        for name, title, mebibytes, gigabytes, fp32, watts in self.rows:
            half = self.own_halves.get(name, self.halves * fp32)
            rates = {format_: round(share * half, 2) for format_, share in self.formats.items()}
            yield Card(
                name,
                title,
                mebibytes * MiB,
                self.generation,
                self.vendor,
                capability,
                self.notes.get(name, ""),
                gigabytes * 1e9,
                Peaks(fp32, **rates),
                watts,
                *MEASURED_CONTEXTS.get(name, (ASSUMED_CONTEXT, "assumed")),
                self.unified,
                tuple(self.spellings.get(name, ())),
                self.source,
            )


# bytes, and who measured them with which CUDA
MEASURED_CONTEXTS: Final = {
    "t4": (147_718_144, "fitcheck-llm 0.3.1, CUDA 12.8 and 13.0"),
    "h100": (766 * MiB, "ours, CUDA 13.0, the median of a process's first 40 steps"),
    "h200": (766 * MiB, "ours, on an H100 with CUDA 13.0"),
}


def cards_of(families: Iterable[Family]) -> dict[str, Card]:
    """All cards of some families, by name."""
    return {card.name: card for family in families for card in family.cards()}
