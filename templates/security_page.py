"""What 'Security' needs: the demonstration's first state and what was measured of our defence."""

from dataclasses import dataclass

from calculator.catalog import SOURCES
from calculator.plane import DEFAULT_ATTACK, MOST_BAD
from templates import defence
from templates.calculator_page import ask

MOST_ITERATIONS = 20  # that the slider offers and the picture has lines for


@dataclass(frozen=True, slots=True)
class Preset:
    """A button of the demonstration."""

    key: str
    label: str
    words: str


ATTACKS = (
    Preset("pull", "Pull away", "twice the gradient, turned round"),
    Preset("flip", "Flip the sign", "the gradient, turned round"),
    Preset("scale", "Times 1,000", "the right direction, far too long"),
    Preset("collude", "Collude", "all in one place, just inside the clipping radius"),
)


def context() -> dict[str, object]:
    """The names that `pages/security.md.j2` uses."""
    return {
        "value": ask("aggregate"),
        "attacks": ATTACKS,
        "default_attack": DEFAULT_ATTACK.value,
        "most_bad": MOST_BAD,
        "most_iterations": MOST_ITERATIONS,
        "measured": defence.read(),
        "sources": SOURCES,
    }
