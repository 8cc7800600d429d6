"""Readings of other clocks, and a verdict on this machine's own."""

from dataclasses import dataclass

from training.access.causes import EXPLANATIONS, Cause
from training.doctor.findings import Finding, PointName, Verdict, fine

TOLERANCE = 3.0  # seconds; hivemind's DHT warns of peers beyond it

FIX = EXPLANATIONS[Cause.CLOCK_OFF].fix


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
