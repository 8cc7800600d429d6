"""Data for 'Join a run': commands, costs, and a recorded terminal."""

from pathlib import Path
from typing import Final

from calculator.catalog import SOURCES
from templates.pieces.commands import (
    JOIN,
    JOIN_OPEN,
    REHEARSE,
    START_ENVIRONMENT,
    TOGETHER,
    at_once,
    download_words,
    install,
    places,
)
from templates.pieces.volunteer_costs import POWERS, TOKENS, downloads, language_rows, rows
from tools.source import find_source
from training.access.causes import TOKENS_PAGE

TERMINAL: Final = Path(__file__).with_name("terminal")


def recorded(name: str) -> list[str]:
    """The lines of a terminal, recorded in the folder `terminal`; `⋮` stands for many."""
    return (TERMINAL / name).read_text("utf-8").splitlines()


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
        "costs": rows(),
        "language": language_rows(),
        "tokens": f"{TOKENS:,}",
        "downloads": downloads(),
        "powers": POWERS,
        "volunteer": recorded("volunteer.txt"),
        "doctor": recorded("doctor.txt"),
        "tokens_page": TOKENS_PAGE,
        "paper": SOURCES["together"],
    }
