"""Time to first gradient: when a volunteer reached each milestone on the way to its first step.

The clock runs from the start of `join`; what the installation took before, as a notebook or an
image tells in `TRAINING_INSTALL_SECONDS`, comes on top. Seconds are cumulative, so the
difference of two milestones is what the step between them took. The clock and what was reached
travel to child processes in the environment: the process that looks after a volunteer and the
one that trains count as one.
"""

import json
import math
import os
import time
from enum import StrEnum

from calculator.errors import InputError

INSTALL_SECONDS = "TRAINING_INSTALL_SECONDS"
_STATE = "TRAINING_MILESTONES"


class Milestone(StrEnum):
    """Milestones between deciding to help and helping, in this order."""

    INSTALL = "install"  # the packages are there; only where somebody timed it
    DOCTOR = "doctor"  # this machine was looked at
    ACCESS = "access"  # the run's authority admitted the volunteer; only where there is one
    CONNECT = "connect"  # an entry point answered
    STATE = "state"  # the weights that the others have are here
    FIRST_BATCH = "first_batch"  # gradients of a first micro-batch are computed
    FIRST_AVERAGE = "first_average"  # the others took them into a global step


def begin() -> None:
    """Start the clock, unless this process or the one that started it already did.

    Raises:
        InputError: when `TRAINING_INSTALL_SECONDS` is no number of seconds.
    """
    if _STATE in os.environ:
        return
    origin: float = time.monotonic()
    so_far: dict[str, float] = {}
    if INSTALL_SECONDS in os.environ:
        install = _seconds(os.environ[INSTALL_SECONDS])
        so_far[Milestone.INSTALL.value] = round(install, 1)
        origin -= install
    _write(origin, so_far)


def mark(milestone: Milestone) -> None:
    """Note that a milestone is reached now; only the first time counts."""
    begin()
    state = json.loads(os.environ[_STATE])
    seconds = time.monotonic() - float(state["origin"])
    state["reached"].setdefault(milestone.value, round(seconds, 1))
    _write(state["origin"], state["reached"])


def reached() -> dict[str, float]:
    """Cumulative seconds by milestone, those reached so far."""
    if _STATE not in os.environ:
        return {}
    seconds: dict[str, float] = json.loads(os.environ[_STATE])["reached"]
    return seconds


def _write(origin: float, so_far: dict[str, float]) -> None:
    os.environ[_STATE] = json.dumps({"origin": origin, "reached": so_far})


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InputError(INSTALL_SECONDS, text, "must be seconds, such as 95.2")
    return seconds
