"""Readings of other clocks, and a verdict on this machine's own."""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass

from training.doctor.findings import Finding, PointName, Verdict, fine

TOLERANCE = 3.0  # seconds; hivemind's DHT warns of peers beyond it

FIX = (
    "set it from the network: `sudo timedatectl set-ntp true` on Linux, `wsl --shutdown` and "
    "a restart on WSL, System Settings > General > Date & Time on macOS"
)


@dataclass(frozen=True)
class Reading:
    """Another clock, read over the network.

    Attributes:
        clock: its owner.
        ahead: seconds by which this machine's clock is ahead of it.
        uncertainty: seconds by which `ahead` may be off in either direction.
    """

    clock: str
    ahead: float
    uncertainty: float


def read(clock: str, told: float, asked_at: float, answered_at: float) -> Reading:
    """A reading from a time reported between two times of our own clock, all in seconds."""
    middle = (asked_at + answered_at) / 2
    return Reading(clock, middle - told, (answered_at - asked_at) / 2)


def read_header(
    clock: str, headers: Mapping[str, str], asked_at: float, answered_at: float
) -> Reading | None:
    """A reading from an HTTP response's Date, in whole seconds; None if there is none.

    A response from a cache reports its Age.
    """
    try:
        date = email.utils.parsedate_to_datetime(headers["Date"]).timestamp()
        age = float(headers.get("Age") or 0)
    except (KeyError, TypeError, ValueError):
        return None
    reading = read(clock, date + age + 0.5, asked_at, answered_at)
    return Reading(clock, reading.ahead, reading.uncertainty + (1.0 if age else 0.5))


def judge(readings: list[Reading]) -> Finding:
    """A verdict from the most certain reading."""
    if not readings:
        fix = "make sure that it is set from the network"
        cause = "no one answered whose clock could be compared"
        return Finding(PointName.CLOCK, Verdict.WARNING, cause, fix)
    best = min(readings, key=lambda reading: reading.uncertainty)
    side = "ahead of" if best.ahead > 0 else "behind"
    cause = f"{abs(best.ahead):,.1f} s {side} {best.clock}"
    if best.uncertainty >= 0.1:
        cause += f" (give or take {best.uncertainty:.1f} s)"
    if abs(best.ahead) - best.uncertainty > TOLERANCE:
        return Finding(PointName.CLOCK, Verdict.PROBLEM, cause, FIX)
    if abs(best.ahead) > TOLERANCE:
        return Finding(PointName.CLOCK, Verdict.WARNING, cause, FIX)
    return fine(PointName.CLOCK, cause)


class Stopwatch:
    """Times of our own clock before and after a request."""

    def __init__(self) -> None:
        self.asked_at = time.time()

    def stop(self) -> tuple[float, float]:
        """Times of the request and the response, in seconds since 1970."""
        return self.asked_at, time.time()
