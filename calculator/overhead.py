"""Memory beyond the allocated bytes: context, library workspaces, the allocator's slack."""

from dataclasses import dataclass
from typing import Final

from calculator.units import MiB

# CUDA 12 with lazy loading; cards differ by some hundred MiB either way
CONTEXT_BYTES: Final = 300 * MiB
CONTEXT_SPREAD: Final = 100 * MiB
# cuBLAS' default workspace by the card's generation; other generations have the smaller one
WORKSPACE_BYTES: Final = 8_519_680
HOPPER_WORKSPACE_BYTES: Final = 32 * MiB
LARGE_WORKSPACES: Final = ("Hopper",)
# cuBLASLt, used by linear layers with a bias, has up to this much of its own
SECOND_WORKSPACE_BYTES: Final = 32 * MiB
# what the allocator reserves above what it hands out, in thousandths: segments of 2 and 20 MiB
SLACK_LOW, SLACK_TYPICAL, SLACK_HIGH = 6, 50, 100


@dataclass(frozen=True, slots=True)
class Overhead:
    """Estimated bytes beyond those of tensors, with a lower and an upper bound."""

    context: int
    workspace: int
    slack: int
    low: int
    high: int

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.context + self.workspace + self.slack


def estimate_overhead(peak: int, generation: str = "") -> Overhead:
    r"""An estimate, kept apart from the exact bytes of tensors.

    $$c + w + s \cdot p$$

    with the context c, the workspace w of the card's generation, and the share s of the peak p that
    the caching allocator reserves above it: typically 5 %, seen from 0.6 to 10 %. The bounds take
    the context 100 MiB smaller or larger and add a second workspace at most.

    Source: torch
    """
    large = generation in LARGE_WORKSPACES
    workspace = HOPPER_WORKSPACE_BYTES if large else WORKSPACE_BYTES
    fewest = CONTEXT_BYTES - CONTEXT_SPREAD + workspace
    most = CONTEXT_BYTES + CONTEXT_SPREAD + workspace + SECOND_WORKSPACE_BYTES
    return Overhead(
        CONTEXT_BYTES,
        workspace,
        peak * SLACK_TYPICAL // 1000,
        fewest + peak * SLACK_LOW // 1000,
        most + peak * SLACK_HIGH // 1000,
    )
