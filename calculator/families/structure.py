"""What decides which operations a step has; sizes stay symbols. Equal structures share a tape."""

from dataclasses import dataclass

from calculator.architecture import Family
from calculator.operations import Heads
from calculator.techniques import Attention, Checkpointing, Precision

# at most this many layers of a run are put on the tape, and the one that stands for those left out:
# the first two and the last may differ from the rest (what all layers share ends with the second)
SIMULATED = 4
REPEATED = 2


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive layers that behave alike; `slots` names the weights of those on the tape."""

    slots: tuple[int, ...]


def layer_runs(layers: int, groups: int, own_last: bool) -> tuple[tuple[Run, ...], tuple[int, ...]]:
    """The runs of a stack whose layers use `groups` distinct weights cyclically.

    The first layer to use a weight makes its 16-bit copy, the last one (the first in the backward
    pass) makes its gradient, so layers fall into runs by whether they are either or both. Returns
    the runs and, for each, how many layers are left out of the tape.
    """
    shared = layers - int(own_last)
    single = min(groups, shared - groups) if groups < shared else shared
    counts = [single]  # layers that make a copy of their weights, which others use later
    if groups < shared:
        counts += [abs(shared - 2 * groups), single]
    runs = []
    for number, count in enumerate(counts):
        # weights used only once in a stack stand between those used first and those used last
        once = number == 1 and shared < 2 * groups
        cycle = SIMULATED if once else min(single, SIMULATED)
        slots = (place % cycle + once * SIMULATED for place in range(min(count, SIMULATED)))
        runs.append((Run(tuple(slots)), max(0, count - SIMULATED)))
    if own_last:
        runs.append((Run((2 * SIMULATED,)), 0))
    runs = [(run, left_out) for run, left_out in runs if run.slots]
    return tuple(run for run, _ in runs), tuple(left_out for _, left_out in runs)


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything about model and plan that changes the operations of a step.

    `runs` are the layers of a stack (an encoder and a decoder alike), `one_sequence` is a
    micro-batch of one, for which matmul need not copy heads; `padded` names the lengths (S, T)
    that the efficient kernel rounds up in its mask.
    """

    family: Family
    precision: Precision
    attention: Attention
    checkpointing: Checkpointing
    reversible: bool
    dropout: bool
    tied: bool
    one_sequence: bool
    gradients_exist: bool
    runs: tuple[Run, ...]
    decoder_runs: tuple[Run, ...] = ()
    gated: bool = False
    token_shift: bool = False
    padded: frozenset[str] = frozenset()

    @property
    def weight_item(self) -> int:
        """Bytes of a weight on the GPU."""
        return 4 if self.precision in (Precision.FP32, Precision.AMP) else 2

    @property
    def autocast_item(self) -> int:
        """Bytes of a number in matrix products."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def flash(self) -> bool:
        """Whether attention runs the flash kernel: in 16 bits and without a mask."""
        wanted = self.attention in (Attention.SDPA, Attention.FLASH)
        masked = self.family in (Family.T5, Family.DALLE)
        return wanted and not masked and self.precision is not Precision.FP32

    @property
    def efficient(self) -> bool:
        """Whether attention runs the memory-efficient kernel, whose rows come in thirty-twos."""
        return self.attention is Attention.EFFICIENT or (
            self.attention is Attention.SDPA and not self.flash
        )

    def layer_slots(self, decoder: bool = False) -> list[int]:
        """The weights' slot of every layer on the tape, in order."""
        runs = self.decoder_runs if decoder else self.runs
        return [slot for run in runs for slot in run.slots]


def self_heads(structure: Structure, length: str = "S") -> Heads:
    """Shapes of self-attention over `length` tokens."""
    rows = "N" if length == "S" else "M"
    return Heads(
        queries=f"{rows}*a",
        keys=f"{rows}*a",
        scores=f"B*h*{length}*{length}",
        rows="B*h*E" if structure.efficient else f"{rows}*h",
        one_sequence=structure.one_sequence,
    )
