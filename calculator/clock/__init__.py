"""Seconds of a step, from the operations that the calculator records for its memory."""

from calculator.clock.answer import (
    BOUNDS,
    TIMED_NOTE,
    Seconds,
    assumptions,
    step_seconds,
    why_untimed,
)
from calculator.clock.axis import starts_of
from calculator.clock.law import FITTED, Efficiencies, seconds
from calculator.clock.work import Work, work_of

__all__ = [
    "BOUNDS",
    "FITTED",
    "TIMED_NOTE",
    "Efficiencies",
    "Seconds",
    "Work",
    "assumptions",
    "seconds",
    "starts_of",
    "step_seconds",
    "why_untimed",
    "work_of",
]
