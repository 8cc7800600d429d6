"""Memory beyond the step's tensors: library workspaces, the allocator's free space, the context."""

from dataclasses import dataclass
from typing import Final

from calculator.bounds import Range
from calculator.cards import Card
from calculator.units import MiB

# cuBLAS' default workspace, and that of Hopper and Blackwell (compute capability 9, 10 and 12)
WORKSPACE_BYTES: Final = 8_519_680
LARGE_WORKSPACE_BYTES: Final = 32 * MiB
LARGE_WORKSPACES: Final = (9, 10, 12)
# the forward pass runs in the program's thread and the backward pass in autograd's: each has a
# handle of its own, and each handle a workspace, which cuBLASLt shares
HANDLES: Final = 2
# what the allocator reserves above what it hands out, in thousandths, where it was not simulated:
# segments of 2 and 20 MiB. The bounds are fitted to 24 published steps, of which the 23 of 2021 and
# 2022 alone would give about 120 and peft's full fine-tuning of 2026 takes 14.7 %; one that filled
# its card is 37 % above
SLACK_LOW, SLACK_TYPICAL, SLACK_HIGH = 6, 50, 150
# a context that nobody measured may be so much smaller or larger
CONTEXT_SPREAD: Final = 100 * MiB


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes beyond those of tensors at the peak, with a lower and an upper bound.

    Attributes:
        context: that of CUDA, with the kernels that are loaded.
        workspace: library workspaces that come from PyTorch's allocator.
        slack: bytes of segments that no tensor and no workspace has.
        low: a lower bound of the sum.
        high: an upper bound.
        unsplit: the part of `slack` that belongs to blocks in use, whose rest was too small to
            split off: `max_memory_allocated` counts it.
        is_simulated: True if the allocator was simulated, False if its slack is typical.
    """

    context: int
    workspace: int
    slack: int
    low: int
    high: int
    unsplit: int = 0
    is_simulated: bool = False

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.context + self.workspace + self.slack


def workspace_bytes(card: Card) -> int:
    """Bytes of cuBLAS' workspaces, which live from the first step on.

    >>> from calculator.cards import CARDS
    >>> workspace_bytes(CARDS["t4"]), workspace_bytes(CARDS["h100"])
    (17039360, 67108864)

    Source: torch (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize)
    """
    return HANDLES * handle_bytes(card)


def handle_bytes(card: Card) -> int:
    """Bytes of one handle's workspace on one stream."""
    large = card.capability is not None and card.capability[0] in LARGE_WORKSPACES
    return LARGE_WORKSPACE_BYTES if large else WORKSPACE_BYTES


def estimate_overhead(peak: int, card: Card) -> Overhead:
    r"""An estimate that does without a simulation of the allocator.

    $$c + w + s \cdot (p + w)$$

    with the card's context c, the workspaces w, and the share s of the peak p that the caching
    allocator reserves above it: typically 5 %, seen from 0.6 to 15 %. The bounds take a context
    that was not measured 100 MiB smaller or larger.

    Source: torch
    """
    workspace = workspace_bytes(card)
    fixed, spread = card.context + workspace, _spread(card)
    low, slack, high = (
        (peak + workspace) * share // 1000 for share in (SLACK_LOW, SLACK_TYPICAL, SLACK_HIGH)
    )
    return Overhead(card.context, workspace, slack, fixed - spread + low, fixed + spread + high)


def simulated_overhead(
    peak: int, allocated: int, reserved: int, card: Card, real: Range
) -> Overhead:
    """The overhead with the allocator's own figures, as its simulation has them.

    With 0 bytes it is a lower bound: what the tensors and the workspaces take at least.

    Args:
        peak: bytes that the step's tensors hold at most.
        allocated: bytes of blocks in use at most, with the workspaces.
        reserved: bytes of all segments.
        card: the card.
        real: the range of real figures around the simulated ones.
    """
    workspace, spread = workspace_bytes(card), _spread(card)
    unsplit = max(0, allocated - peak - workspace)
    allocated = max(allocated, peak + workspace)
    reserved = max(reserved, allocated)
    low, high = (reserved * share // 1000 for share in (real.low, real.high))
    return Overhead(
        card.context,
        workspace,
        reserved - peak - workspace,
        max(low, allocated) + card.context - spread - peak,
        high + card.context + spread - peak,
        unsplit,
        is_simulated=True,
    )


def _spread(card: Card) -> int:
    return CONTEXT_SPREAD if card.context_source == "assumed" else 0
