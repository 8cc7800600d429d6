"""Every figure here was published by others; the comments say where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.planner.compute import Crowd, daily_failure_rate, failure_odds, run_cost
from tests.calculator.answers import refused


def test_hours_of_a_crowd_add_up_to_the_work() -> None:
    # LLaMA 65B: 1,022,362 A100 hours and about 21 days on 2,048 of them (its section 2.4)
    flops = 1_022_362 * 3600 * 312e12 * 0.472
    cost = run_cost(flops, (Crowd(2048, 312e12, 0.472, watts=400, dollars_per_hour=2),))
    assert cost.gpu_hours == pytest.approx(1_022_362)
    assert cost.days == pytest.approx(20.8, abs=0.05)
    assert cost.megawatt_hours == pytest.approx(449.84, abs=0.01)
    assert cost.dollars == pytest.approx(2 * 1_022_362)


counts = st.integers(1, 10_000)


@given(counts, counts, st.floats(0.01, 1), st.floats(0.1, 24), st.floats(0, 1))
def test_more_gpus_never_take_longer_or_fail_less(
    one: int, more: int, mfu: float, hours: float, monthly: float
) -> None:
    few = run_cost(1e21, (Crowd(one, 312e12, mfu, hours),))
    many = run_cost(1e21, (Crowd(one, 312e12, mfu, hours), Crowd(more, 65e12, mfu, hours)))
    assert many.days < few.days
    daily = daily_failure_rate(monthly)
    assert failure_odds(daily, one) <= failure_odds(daily, one + more)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpus": 0}, "gpus"),
        ({"utilization": 1.1}, "utilization"),
        ({"utilization": 0.0}, "utilization"),
        ({"hours_per_day": 25.0}, "hours_per_day"),
        ({"watts": -1.0}, "watts"),
    ],
)
def test_a_crowd_that_cannot_be_is_refused(change: dict[str, float], field: str) -> None:
    fields: dict[str, float] = {"gpus": 1, "peak_flops": 1e12, "utilization": 0.5, **change}
    with refused(field):
        Crowd(**fields)  # type: ignore[arg-type]
