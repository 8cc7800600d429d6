"""Readings of other clocks, and what they say of ours."""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass

from training.doctor.findings import Finding, PointName, Verdict, fine

TOLERANCE = 3.0  # seconds; hivemind's DHT warns of peers beyond it

FIX = (
    "set it by the network's time: `sudo timedatectl set-ntp true` on Linux, `wsl --shutdown` and "
    "a new start on WSL, System Settings > General > Date & Time on macOS"
)


@dataclass(frozen=True)
class Reading:
    """Another clock, read over the network.

    Attributes:
        clock: whose it is.
        ahead: seconds by which this machine's clock is ahead of it.
        uncertainty: seconds by which `ahead` may be off either way.
    """

    clock: str
    ahead: float
    uncertainty: float


def read(clock: str, told: float, asked_at: float, answered_at: float) -> Reading:
    """A reading from a time told between two moments of our own clock, all in seconds."""
    middle = (asked_at + answered_at) / 2
    return Reading(clock, middle - told, (answered_at - asked_at) / 2)


def read_header(
    clock: str, headers: Mapping[str, str], asked_at: float, answered_at: float
) -> Reading | None:
    """A reading from an HTTP answer's Date, which tells whole seconds; None where there is none.

    A cache may keep an answer; it then tells its Age.
    """
    try:
        date = email.utils.parsedate_to_datetime(headers["Date"]).timestamp()
        age = float(headers.get("Age") or 0)
    except (KeyError, TypeError, ValueError):
        return None
    reading = read(clock, date + age + 0.5, asked_at, answered_at)
    return Reading(clock, reading.ahead, reading.uncertainty + (1.0 if age else 0.5))


def judge(readings: list[Reading]) -> Finding:
    """What the surest reading says."""
    if not readings:
        fix = "see that it is set by the network's time"
        cause = "nobody answered whose clock could be compared"
        return Finding(PointName.CLOCK, Verdict.WARNING, cause, fix)
    best = min(readings, key=lambda reading: reading.uncertainty)
    side = "ahead of" if best.ahead > 0 else "behind"
    cause = f"{abs(best.ahead):,.1f} s {side} that of {best.clock}"
    if best.uncertainty >= 0.1:
        cause += f" (give or take {best.uncertainty:.1f} s)"
    if abs(best.ahead) - best.uncertainty > TOLERANCE:
        return Finding(PointName.CLOCK, Verdict.PROBLEM, cause, FIX)
    if abs(best.ahead) > TOLERANCE:
        return Finding(PointName.CLOCK, Verdict.WARNING, cause, FIX)
    return fine(PointName.CLOCK, cause)


class Stopwatch:
    """Moments of our own clock around a question."""

    def __init__(self) -> None:
        self.asked_at = time.time()

    def stop(self) -> tuple[float, float]:
        """When it was asked and answered, in seconds since 1970."""
        return self.asked_at, time.time()
