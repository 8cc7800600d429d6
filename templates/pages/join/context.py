"""Data for 'Join a run': commands, costs, messages, and a recorded terminal."""

from pathlib import Path
from typing import Final

from calculator.catalog import SOURCES
from templates.pages.join.messages import EXPECTED, SERIOUS, STAGES
from templates.pieces.commands import (
    JOIN,
    JOIN_OPEN,
    REHEARSE,
    RUN_WORDS,
    START_ENVIRONMENT,
    TOGETHER,
    at_once,
    download_words,
    install,
    places,
)
from templates.pieces.volunteer_costs import POWERS, TOKENS, downloads, language_rows, rows
from tools.source import find_source
from training.access.causes import EXPLANATIONS, TOKENS_PAGE
from training.doctor.findings import POINTS

TERMINAL: Final = Path(__file__).with_name("terminal")


FIRST: Final = 9
LAST: Final = 3


def recorded(name: str) -> list[str]:
    """The lines of a terminal, as recorded in the folder `terminal`."""
    return (TERMINAL / name).read_text("utf-8").splitlines()


def excerpt(lines: list[str]) -> list[str]:
    """The first and last lines, with an ellipsis for those between."""
    if len(lines) <= FIRST + LAST:
        return lines
    return [*lines[:FIRST], "\N{VERTICAL ELLIPSIS}", *lines[-LAST:]]


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    source = find_source()
    return {
        "places": places(source),
        "install": install(source),
        "at_once": at_once(source),
        "download": download_words(source),
        "environment": START_ENVIRONMENT,
        "join": JOIN,
        "join_open": JOIN_OPEN,
        "machine_doctor": f"{TOGETHER} doctor",
        "rehearse": REHEARSE,
        "run_words": RUN_WORDS,
        "costs": rows(),
        "language": language_rows(),
        "tokens": f"{TOKENS:,}",
        "downloads": downloads(),
        "powers": POWERS,
        "volunteer": excerpt(recorded("volunteer.txt")),
        "doctor": recorded("doctor.txt"),
        "stages": [[stage.value, words] for stage, words in STAGES.items()],
        "expected": [message.cells for message in EXPECTED],
        "serious": [message.cells for message in SERIOUS],
        "points": [[point.title, point.question, point.reason] for point in POINTS.values()],
        "causes": [[entry.meaning, entry.fix] for entry in EXPLANATIONS.values()],
        "tokens_page": TOKENS_PAGE,
        "paper": SOURCES["together"],
    }
