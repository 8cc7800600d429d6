"""Every figure here was published by others; the comments say where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import InputError
from calculator.planner.compute import (
    Crowd,
    daily_failure_rate,
    failure_odds,
    run_cost,
    utilization,
    utilization_of_run,
)


# Zhao et al., 2023, table 1: parameters, tokens, chips, days; peak rate of a chip
@pytest.mark.parametrize(
    ("parameters", "tokens", "gpus", "days", "peak"),
    [
        (137e9, 768e9, 1024, 57.7, 123e12),  # LaMDA on TPUv3, as the table prints it
        (101e9, 311e9, 192, 22, 312e12),  # FLM-101B on A800: it grew from 16B, so 6ND is too much
    ],
)
def test_a_run_beyond_the_hardware_is_refused_with_the_reason(
    parameters: float, tokens: float, gpus: int, days: float, peak: float
) -> None:
    with pytest.raises(InputError, match="no GPU computes more than 100%") as error:
        utilization_of_run(6 * parameters * tokens, gpus, days, peak)
    assert error.value.field == "days"


def test_a_throughput_beyond_the_hardware_is_refused() -> None:
    with pytest.raises(InputError, match=r"100\.1%"):
        utilization(1e9, 1001, 1e12)


def test_hours_of_a_crowd_add_up_to_the_work() -> None:
    # LLaMA 65B: 1,022,362 A100 hours and about 21 days on 2,048 of them (its section 2.4)
    flops = 1_022_362 * 3600 * 312e12 * 0.472
    cost = run_cost(flops, (Crowd(2048, 312e12, 0.472, watts=400, dollars_per_hour=2),))
    assert cost.gpu_hours == pytest.approx(1_022_362)
    assert cost.days == pytest.approx(20.8, abs=0.05)
    assert cost.megawatt_hours == pytest.approx(449.84, abs=0.01)
    assert cost.dollars == pytest.approx(2 * 1_022_362)


counts = st.integers(1, 10_000)


@given(counts, counts, st.floats(0.01, 1), st.floats(0.1, 24))
def test_more_gpus_never_take_longer(one: int, more: int, mfu: float, hours: float) -> None:
    few = run_cost(1e21, (Crowd(one, 312e12, mfu, hours),))
    many = run_cost(1e21, (Crowd(one, 312e12, mfu, hours), Crowd(more, 65e12, mfu, hours)))
    assert many.days < few.days


@given(st.floats(0, 1), counts, counts)
def test_more_gpus_never_fail_less(monthly: float, one: int, more: int) -> None:
    daily = daily_failure_rate(monthly)
    assert failure_odds(daily, one) <= failure_odds(daily, one + more)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True])
def test_a_rate_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="peak_flops"):
        utilization(1e9, 1.0, value)


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
    with pytest.raises(InputError) as error:
        Crowd(**fields)  # type: ignore[arg-type]
    assert error.value.field == field
