"""Seconds of a step, from the operations that the calculator records for its memory."""

from calculator.clock.answer import BOUNDS, Seconds, network_note, step_seconds, why_untimed
from calculator.clock.law import FITTED, Efficiencies, seconds
from calculator.clock.work import Work, work_of

__all__ = [
    "BOUNDS",
    "FITTED",
    "Efficiencies",
    "Seconds",
    "Work",
    "network_note",
    "seconds",
    "step_seconds",
    "why_untimed",
    "work_of",
]
