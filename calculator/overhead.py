"""What comes on top of the allocated bytes: context, library workspaces, the allocator's slack."""

from dataclasses import dataclass
from typing import Final

from calculator.units import MiB

# CUDA 12 with lazy loading; cards differ by some 100 MiB
CONTEXT_BYTES: Final = 300 * MiB
# cuBLAS: 8 x 1 MiB and 2 x 64 KiB before Hopper, 32 MiB on Hopper (CUDABlas workspace defaults)
WORKSPACE_BYTES: Final = 8_519_680
HOPPER_WORKSPACE_BYTES: Final = 32 * MiB
# reserved above allocated: 0.6 to 10 %, typically 5 %
SLACK_PERCENT: Final = 5


@dataclass(frozen=True, slots=True)
class Overhead:
    """Bytes on top of what tensors take."""

    context: int
    workspace: int
    slack: int

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.context + self.workspace + self.slack


def estimate_overhead(peak: int, generation: str = "") -> Overhead:
    """An estimate, kept apart from the exact bytes of tensors.

    Source: torch
    """
    workspace = HOPPER_WORKSPACE_BYTES if generation == "Hopper" else WORKSPACE_BYTES
    return Overhead(CONTEXT_BYTES, workspace, peak * SLACK_PERCENT // 100)
