"""The 2021 run in numbers."""

from typing import Final

from calculator.architecture import Architecture
from calculator.estimate import estimate
from calculator.plan import Plan

# Borzunov et al., 2022, sections 3.2 to 3.4.
STEPS: Final = 31_250
WARM_UP: Final = 3_125
DONE: Final = 0.8
MONTHS: Final = "2.5 months"
VOLUNTEERS: Final = 37
PAIRS: Final = 100_000_000
# From the run's published configuration.
BATCH: Final = 4_096


def figures(architecture: Architecture) -> dict[str, str]:
    """The run's figures as texts; its parameters are counted."""
    unshared = Plan(sharing_groups=architecture.layers)
    done = round(DONE * STEPS)
    return {
        "unshared": f"{estimate(architecture, unshared).parameters / 1e9:.1f} billion",
        "shared": f"{estimate(architecture).parameters / 1e6:.0f} million",
        "done": f"{done:,}",
        "share": f"{100 * DONE:.0f} %",
        "steps": f"{STEPS:,}",
        "batch": f"{BATCH:,}",
        "sequences": f"{done * BATCH / 1e6:.0f} million",
        "pairs": f"{PAIRS / 1e6:.0f} million",
        "months": MONTHS,
        "volunteers": str(VOLUNTEERS),
        "warm_up": f"{WARM_UP:,}",
        "done_share": str(DONE),
    }
