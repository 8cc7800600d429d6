"""The live page's forecast of a run's end, held against the recorded run, whose end is known."""

import json
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from templates.pieces.recorded_run import first_run
from tools.console import ROOT
from tools.node import find_node

SCRIPT = ROOT / "docs" / "assets" / "live" / "forecast.js"
ASK = """
import { timeLeft } from "./forecast.js";
import { readFileSync } from "node:fs";
const states = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(states.map(([times, left]) => timeLeft(times, left) ?? null)));
"""


def forecasts(states: list[tuple[list[float], int]], folder: Path) -> list[Any]:
    """The script's forecast for each list of the steps' times, and number of steps left."""
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    (folder / SCRIPT.name).write_text(SCRIPT.read_text("utf-8"), "utf-8")
    (folder / "ask.js").write_text(ASK, "utf-8")
    done = subprocess.run(
        [find_node().node, folder / "ask.js"],
        input=json.dumps(states),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(done.stdout)
    return found


def test_an_even_pace_goes_on(tmp_path: Path) -> None:
    times = [2000.0 * step for step in range(55)]
    (found,) = forecasts([(times, 30)], tmp_path)
    assert found == pytest.approx({"seconds": 60, "low": 60, "high": 60})


def test_the_newest_pace_is_forecast_and_the_fastest_and_slowest_bound_it(tmp_path: Path) -> None:
    # ten parts of ten steps: one second a step, then three, then two in the last part
    paces = [1.0] * 50 + [3.0] * 40 + [2.0] * 10
    times = [1000 * sum(paces[:step]) for step in range(len(paces) + 1)]
    (found,) = forecasts([(times, 7)], tmp_path)
    assert found == pytest.approx({"seconds": 14, "low": 7, "high": 21})


def test_nothing_is_forecast_from_few_steps_or_after_the_last(tmp_path: Path) -> None:
    times = [1000.0 * step for step in range(30)]
    assert forecasts([(times[:20], 10), (times, 0), ([], 10)], tmp_path) == [None] * 3


def test_the_recorded_runs_end_was_mostly_inside_the_interval(tmp_path: Path) -> None:
    steps = first_run().steps
    times = [1000 * datetime.fromisoformat(step["time"]).timestamp() for step in steps]
    whole = len(times)
    asked = range(21, whole - 5)
    found = forecasts([(times[:done], whole - done) for done in asked], tmp_path)
    actual = [(times[-1] - times[done - 1]) / 1000 for done in asked]
    inside = sum(one["low"] <= end <= one["high"] for one, end in zip(found, actual, strict=True))
    assert inside > 0.8 * len(actual)
    errors = sorted(abs(one["seconds"] / end - 1) for one, end in zip(found, actual, strict=True))
    assert errors[len(errors) // 2] < 0.15
