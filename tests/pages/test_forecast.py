"""The live page's forecast of a run's end, held against the recorded run, whose end is known."""

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
