"""The learning rate over a run's steps, and the corners that the live page draws it from."""

import pytest

from tests.pages.scripts import call
from training.run.recipes import ScheduleSettings, corners, learning_rate_factor


def test_schedule_warms_up_and_ends_at_zero() -> None:
    schedule = ScheduleSettings(total_steps=31_250, warmup_steps=3_125)
    assert learning_rate_factor(schedule, 0) == pytest.approx(1 / 3_125)
    assert learning_rate_factor(schedule, 3_124) == 1.0
    assert learning_rate_factor(schedule, 3_125) == 1.0
    assert learning_rate_factor(schedule, (31_250 + 3_125) // 2) == pytest.approx(0.5, abs=1e-4)
    assert learning_rate_factor(schedule, 31_250) == 0.0
    assert learning_rate_factor(schedule, 40_000) == 0.0


@pytest.mark.parametrize(("total", "warm_up"), [(300, 10), (40, 0), (40, 1), (7, 7), (1, 0)])
def test_the_page_draws_the_rates_that_volunteers_follow(total: int, warm_up: int) -> None:
    schedule = ScheduleSettings(total, warm_up)
    steps, rates = zip(*corners(schedule, 0.05), strict=True)
    asked = range(1, total + 3)
    drawn = call(
        "docs/assets/live/series.js", "interpolate", [[steps, rates, step] for step in asked]
    )
    # the page counts steps from 1, the schedule from 0
    assert drawn == pytest.approx([0.05 * learning_rate_factor(schedule, n - 1) for n in asked])
