"""A run's state, its events and the forecast of its end, in the words of the live page."""

from datetime import UTC, datetime
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


def run(
    first: int, losses: list[float], rejected: int = 0, seconds: float = 15, **others: Any
) -> dict[str, Any]:
    """A run with a step every so many seconds, the first one of that number."""
    steps = range(first, first + len(losses))
    figures = {"loss": losses, "rejected": [rejected, *[0] * (len(losses) - 1)]}
    times = [1000 * seconds * step for step in steps]
    progress = {"step": [*steps], "time": times, "length": len(steps), "figures": figures}
    return {
        "card": {"schedule": {"total_steps": 1000, "warmup_steps": 100}},
        "progress": {**progress, "returns": []},
        "peers": [],
        "checkpoints": [],
        **others,
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


def test_the_time_left_is_told_of_a_running_run_with_enough_steps() -> None:
    states = (run(1, LEVEL), "running"), (run(1, LEVEL[:15]), "running"), (run(1, LEVEL), "silent")
    words = "About 4 hours left: 4 hours at the fastest pace so far, 4 hours at the slowest."
    assert call("docs/assets/live/figures.js", "lengthInWords", states) == [words, "", ""]


def test_a_silent_run_says_for_how_long_and_who_is_there_and_a_wrong_clock_is_told() -> None:
    level = run(1, LEVEL)  # ends after 600 seconds
    seen = [{"last_seen": datetime.fromtimestamp(600 + 12 * 60, UTC).isoformat()}]
    given = {
        ("silent", "Silent for 12 minutes", "may be offline"): (level, 600 + 12 * 60 + 5),
        ("silent", "Silent for 12 minutes", "Volunteers are present (one was seen 5 seconds"): (
            {**level, "peers": seen},
            600 + 12 * 60 + 5,
        ),
        ("running", "Running", "Newest step 70 seconds ago."): (level, 670),
        ("running", "Running", "The monitor's clock is ahead of the server's."): (level, 560),
        ("waiting", "Waiting for the first step", "no one has completed a step"): (run(1, []), 9),
    }
    asked = [(data, 1000 * seconds) for data, seconds in given.values()]
    told = call("docs/assets/live/status.js", "describe", asked)
    for (kind, sentence, detail), words in zip(given, told, strict=True):
        assert (words["kind"], words["sentence"]) == (kind, sentence)
        assert detail in words["detail"]


def test_stalls_returns_and_who_came_and_went_are_events_in_their_order() -> None:
    data = run(1, LEVEL)
    data["progress"]["time"][20:] = [time + 360_000 for time in data["progress"]["time"][20:]]
    data["progress"]["returns"] = [{"from": 39, "to": 36, "time": 1e6}]
    ada = {"id": "a", "name": "ada", "samples": 1, "state": "left"}
    ada |= {"first_seen": "1970-01-01T00:00:01Z", "last_seen": "1970-01-01T01:00:00Z"}
    data["peers"] = [ada, {**ada, "id": "b", "name": "", "samples": 0, "state": "training"}]
    data["checkpoints"] = [{"step": 10, "time": "1970-01-01T00:02:30Z"}]
    (told,) = call("templates/pages/live/events.js", "eventsOf", [[data]])
    assert [event["words"] for event in told] == [
        *("ada joined", "b joined", "Checkpoint at step 10", "No step for 6 minutes"),
        *("Went back from step 39 to before step 36", "ada left"),
    ]
    assert (told[3]["time"], told[3]["end"]) == (300_000, 300_000 + 375_000)
