"""Traffic of a volunteer from a cluster's method to local steps, each factor with its source."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calculator.swarm import communication
from calculator.units import format_seconds, format_traffic
from templates.pages.measurements.sparse_links import Round
from training.run.recipes import PAPER

SMALL_BATCH: Final = 512  # an eighth of the run's
LONG: Final = 8  # global batches in a long round; long-rounds.json has their loss


@dataclass(frozen=True, slots=True)
class Fall:
    """A method's traffic for one global batch, and the one before it.

    Attributes:
        label, words: what is new. source: of its factor.
        moved: bytes that a volunteer sends and receives.
        seconds: that they take at the connection's rate, or were measured.
        before: bytes of the method before; None for the first.
    """

    label: str
    words: str
    source: str
    moved: float
    seconds: float
    before: float | None

    @property
    def traffic(self) -> str:
        """The bytes in words."""
        return format_traffic(self.moved)

    @property
    def time(self) -> str:
        """The seconds in words."""
        return format_seconds(self.seconds)

    @property
    def factor(self) -> str:
        """The factor against the method before, in words."""
        if self.before is None:
            return "\N{EN DASH}"
        times = self.before / self.moved
        return (
            f"{times:.3g}\N{MULTIPLICATION SIGN}"
            if times >= 1
            else f"{1 / times:.3g}\N{MULTIPLICATION SIGN} more"
        )

    @property
    def width(self) -> float:
        """Length of a bar on a logarithmic scale that begins at 1 MB."""
        return max(0.0, math.log10(self.moved / 1e6))

    @property
    def cells(self) -> list[str]:
        """The row of a table."""
        return [f"{self.label}<small>{self.words}</small>", self.traffic, self.factor, self.source]


def falls(unshared: tuple[int, int], shared: int, measured: Round) -> list[Fall]:
    """From plain data parallelism at home to the 2021 run and to rounds of local steps.

    Args:
        unshared: bytes of one copy of all gradients in 32 and in 8 bits, without sharing.
        shared: in 8 bits, with layers that share their weights.
        measured: a round of as many volunteers.
    """
    return list(_falls(unshared, shared, measured))


def _falls(unshared: tuple[int, int], shared: int, measured: Round) -> Iterator[Fall]:
    peers, rate = measured.peers, measured.mbit * 1e6
    batch = PAPER.swarm.target_batch_size
    before: float | None = None
    averaged = (
        (
            "A cluster's method",
            f"32 bits, every {SMALL_BATCH} sequences",
            "counted from the model's tensors",
            batch // SMALL_BATCH * unshared[0],
        ),
        ("Large batches", f"every {batch:,} sequences", "the recipe's batch", unshared[0]),
        (
            "Compression",
            "8 bits per element",
            "counted; the table above has it measured",
            unshared[1],
        ),
        ("Shared layers", "four sets of weights for 64 layers", "counted", shared),
        ("Averaged weights", "exchanged after every step, too", "the recipe", 2 * shared),
    )
    for label, words, source, message in averaged:
        sent = communication.all_reduce_bytes(message, peers)
        seconds = communication.transfer_seconds(sent, rate)
        yield Fall(label, words, source, 2 * sent, seconds, before)
        before = 2.0 * sent
    moved = measured.sent + measured.received
    words = "a round of local steps every {} sequences"
    yield Fall(
        "Sparse updates",
        words.format(f"{batch:,}"),
        "measured bytes, below",
        moved,
        measured.moving,
        before,
    )
    yield Fall(
        "Longer rounds",
        words.format(f"{LONG * batch:,}"),
        f"{LONG} times as long; the table below has its cost",
        moved / LONG,
        measured.moving / LONG,
        moved,
    )
