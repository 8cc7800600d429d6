"""Data for 'How accurate is it?': real cards, the simulated GPU, other calculators."""

from templates.pages.accuracy.boards import boards, cards
from templates.pages.accuracy.deepspeed import deepspeed
from templates.pages.accuracy.peers import peer_scores
from templates.pieces.accuracy import devices, on_card
from validation.configuration import Configuration
from validation.grid import CARD_STEPS
from validation.rows import read_rows
from validation.table import table

# The columns of an `Accuracy`, after its heading.
ERRORS = ["Steps", "Within 0.01 %", "Median error", "90 % are within", "Worst"]


def example() -> tuple[str, str]:
    """A `measure` command and its output for a committed row."""
    row = min(read_rows("counting"), key=lambda row: len(row["configuration"]))
    configuration = Configuration.from_dict(row["configuration"])
    printed = "\n".join(table(configuration, row))
    return f"python -m validation measure {configuration.command}", printed


def _in_scoreboard(anchor: str, title: str) -> str:
    """A link to a place of the scoreboard, which has every row."""
    return f'<a href="../scoreboard/#{anchor}">{title}</a>'


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    told, printed = example()
    return {
        **cards(),
        "scoreboard": [
            [_in_scoreboard(board.source.key, board.source.title), *board.summary.cells]
            for board in boards()
        ],
        "card": on_card(),
        "devices": devices(),
        "errors": ERRORS,
        "peers": peer_scores(),
        "others": [
            [_in_scoreboard(f"others-{place}", score.peer.title), *score.rows[0].cells[1:]]
            for place, score in enumerate(peer_scores(), 1)
        ],
        "deepspeed": deepspeed(),
        "check_command": told,
        "check_output": printed,
        "contributed": len(CARD_STEPS),
    }
