"""The clock beside published seconds."""

from collections import Counter
from statistics import median

import pytest

from calculator.clock import BOUNDS, FITTED
from validation.seconds import bounds, fit, in_order, left_out, timed

# the median error, and shares of rows within 25 %, and of pairs in order
MEDIAN, NEAR, ORDERED = 0.125, 0.9, 0.95


def test_every_step_of_one_machine_is_tried() -> None:
    # llm-foundry's tables have 142 rows of 8 GPUs in bf16; fitcheck's archive has 57
    sources = Counter(row.source for row in timed())
    assert sum(sources.values()) == 142 + 57
    assert sources["fitcheck, T4"] == 57


def test_the_calculators_constants_are_those_of_the_fit() -> None:
    fitted = fit(timed())
    for name in FITTED.__slots__:
        assert getattr(FITTED, name) == pytest.approx(getattr(fitted, name), rel=0.01)


@pytest.mark.parametrize("source", sorted({row.source for row in timed()}))
def test_the_law_describes_every_source(source: str) -> None:
    fitted = fit(timed())
    rows = [row for row in timed() if row.source == source]
    assert sum(abs(row.error(fitted)) <= 0.25 for row in rows) >= NEAR * len(rows)
    assert in_order(rows, fitted) >= ORDERED


def test_a_source_left_out_is_predicted() -> None:
    for source, own, fitted in left_out():
        errors = [abs(row.error(fitted)) for row in own]
        assert median(errors) <= MEDIAN, source
        assert sum(error <= 0.25 for error in errors) >= NEAR * len(own), source
        assert in_order(own, fitted) >= ORDERED, source


def test_the_answers_bounds_hold_nine_of_ten_steps_of_sources_left_out() -> None:
    errors = [row.error(fitted) for _, rows, fitted in left_out() for row in rows]
    assert pytest.approx(bounds(errors), abs=0.02) == BOUNDS
