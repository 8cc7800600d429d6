"""A run whose loss stands still: the live page names the likely cause."""

from typing import Any

import pytest

from tests.pages.scripts import call

SCHEDULE = {"total_steps": 1000, "warmup_steps": 100}


def run(first: int, losses: list[float], rejected: int = 0, seconds: float = 15) -> dict[str, Any]:
    """A run with a step every so many seconds, the first one of that number."""
    steps = range(first, first + len(losses))
    return {
        "card": {"schedule": SCHEDULE},
        "progress": {
            "step": [*steps],
            "time": [1000 * seconds * step for step in steps],
            "figures": {"loss": losses, "rejected": [rejected, *[0] * (len(losses) - 1)]},
        },
    }


def words(given: dict[str, Any]) -> str:
    (found,) = call("docs/assets/live/still.js", "whyStill", [[given]])
    return str(found)


def test_nothing_is_said_of_a_loss_that_falls_or_of_a_few_steps() -> None:
    assert words(run(200, [4 - step / 40 for step in range(40)])) == ""
    assert words(run(200, [2.0] * 40, seconds=100)) == words(run(200, [])) == ""


@pytest.mark.parametrize(
    ("first", "rejected", "cause"),
    [
        (200, 0, "Nothing in its data says why."),
        (200, 3, "In 1 of its steps gradients were rejected"),
        (20, 0, "The learning rate is still warming up"),
        (950, 0, "The learning rate is almost zero"),
    ],
)
def test_a_loss_that_stands_still_gets_its_cause(first: int, rejected: int, cause: str) -> None:
    # 39 steps of 15 s are 9 min 45 s, so all of them are within ten minutes
    told = words(run(first, [2.0] * 40, rejected))
    assert told.startswith(" The loss has not fallen for 10 minutes.")
    assert cause in told
