"""Data for the scoreboard: what 'How accurate is it?' sums up, row by row."""

from templates.pages.accuracy.context import context

__all__ = ["context"]
