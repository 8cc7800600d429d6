"""Data for 'Train with local steps': commands and what was measured."""

from calculator.catalog import SOURCES
from templates.pages.local_steps import learning
from templates.pieces import commands


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "commands": commands,
        "sparse": SOURCES["sparseloco"],
        "local_steps": learning.measured(),
    }
