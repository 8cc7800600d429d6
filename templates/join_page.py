"""What 'Join a run' needs: commands, costs, messages, and a recorded terminal."""

from pathlib import Path
from typing import Final

from calculator.catalog import SOURCES
from templates.commands import ADDRESS_WORDS, JOIN, JOIN_OPEN, PLACES, REHEARSE, START_ENVIRONMENT
from templates.messages import EXPECTED, SERIOUS, STAGES
from templates.volunteer_costs import POWERS, rows
from training.access.causes import EXPLANATIONS, TOKENS_PAGE
from training.doctor.findings import POINTS
from training.doctor.software import INSTALL

TERMINAL: Final = Path(__file__).with_name("terminal")


FIRST: Final = 9
LAST: Final = 3


def recorded(name: str) -> list[str]:
    """The lines that a terminal showed, as recorded in templates/terminal."""
    return (TERMINAL / name).read_text("utf-8").splitlines()


def excerpt(lines: list[str]) -> list[str]:
    """The first and the last lines, with a sign for those between."""
    if len(lines) <= FIRST + LAST:
        return lines
    return [*lines[:FIRST], "\N{VERTICAL ELLIPSIS}", *lines[-LAST:]]


def context() -> dict[str, object]:
    """The names that `pages/join.md.j2` uses."""
    return {
        "places": PLACES,
        "install": INSTALL,
        "environment": START_ENVIRONMENT,
        "join": JOIN,
        "join_open": JOIN_OPEN,
        "rehearse": REHEARSE,
        "address_words": ADDRESS_WORDS,
        "costs": rows(),
        "powers": POWERS,
        "volunteer": excerpt(recorded("volunteer.txt")),
        "doctor": recorded("doctor.txt"),
        "stages": [[stage.value, words] for stage, words in STAGES.items()],
        "expected": [message.cells for message in EXPECTED],
        "serious": [message.cells for message in SERIOUS],
        "points": [[point.title, point.question, point.reason] for point in POINTS.values()],
        "causes": [[entry.meaning, entry.mend] for entry in EXPLANATIONS.values()],
        "tokens_page": TOKENS_PAGE,
        "paper": SOURCES["together"],
    }
