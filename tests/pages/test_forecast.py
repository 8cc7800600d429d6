"""The live page's forecast of a run's end, and the likely cause of a loss that stands still."""

from datetime import datetime
from typing import Any

import pytest

from templates.pieces.recorded_run import first_run
from tests.pages.scripts import call


def forecasts(*states: tuple[list[float], int]) -> list[Any]:
    """The script's forecast for each list of the steps' times, and number of steps left."""
    return call("docs/assets/live/forecast.js", "timeLeft", states)


def test_an_even_pace_goes_on_and_nothing_is_forecast_from_few_steps_or_after_the_last() -> None:
    even = [2000.0 * step for step in range(55)]
    found, *others = forecasts((even, 30), (even[:20], 10), (even, 0), ([], 10))
    assert found == pytest.approx({"seconds": 60, "low": 60, "high": 60})
    assert others == [None] * 3


def test_the_newest_pace_is_forecast_and_the_fastest_and_slowest_bound_it() -> None:
    # ten parts of ten steps: one second a step, then three, then two in the last part
    paces = [1.0] * 50 + [3.0] * 40 + [2.0] * 10
    times = [1000 * sum(paces[:step]) for step in range(len(paces) + 1)]
    (found,) = forecasts((times, 7))
    assert found == pytest.approx({"seconds": 14, "low": 7, "high": 21})


def test_the_recorded_runs_end_was_mostly_inside_the_interval() -> None:
    steps = first_run().steps
    times = [1000 * datetime.fromisoformat(step["time"]).timestamp() for step in steps]
    whole = len(times)
    asked = range(21, whole - 5)
    found = forecasts(*((times[:done], whole - done) for done in asked))
    actual = [(times[-1] - times[done - 1]) / 1000 for done in asked]
    inside = sum(one["low"] <= end <= one["high"] for one, end in zip(found, actual, strict=True))
    assert inside > 0.8 * len(actual)
    errors = sorted(abs(one["seconds"] / end - 1) for one, end in zip(found, actual, strict=True))
    assert errors[len(errors) // 2] < 0.15


def run(first: int, losses: list[float], rejected: int = 0, seconds: float = 15) -> dict[str, Any]:
    """A run with a step every so many seconds, the first one of that number."""
    steps = range(first, first + len(losses))
    figures = {"loss": losses, "rejected": [rejected, *[0] * (len(losses) - 1)]}
    times = [1000 * seconds * step for step in steps]
    return {
        "card": {"schedule": {"total_steps": 1000, "warmup_steps": 100}},
        "progress": {"step": [*steps], "time": times, "figures": figures},
    }


LEVEL = [2.0] * 40  # 39 steps of 15 s are 9 min 45 s, so all of them are within ten minutes
STILL = {
    "Nothing in its data says why.": run(200, LEVEL),
    "In 1 of its steps gradients were rejected": run(200, LEVEL, rejected=3),
    "The learning rate is still warming up": run(20, LEVEL),
    "The learning rate is almost zero": run(950, LEVEL),
}


def test_a_loss_that_stands_still_gets_its_cause_but_not_one_that_falls_or_has_few_steps() -> None:
    falling = run(200, [4 - step / 40 for step in range(40)])
    given = (falling, run(200, LEVEL, seconds=100), run(200, []), *STILL.values())
    told = call("docs/assets/live/still.js", "whyStill", [[one] for one in given])
    assert told[:3] == [""] * 3
    for cause, words in zip(STILL, told[3:], strict=True):
        assert words.startswith(" The loss has not fallen for 10 minutes.")
        assert cause in words
