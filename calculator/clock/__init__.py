"""Seconds of a step, from the operations that the calculator records for its memory."""

from calculator.clock.law import FITTED, Efficiencies, seconds
from calculator.clock.work import Work, work_of

__all__ = ["FITTED", "Efficiencies", "Work", "seconds", "work_of"]
