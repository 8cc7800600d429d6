"""The clock beside published seconds."""

from collections import Counter
from functools import cache
from statistics import median

import pytest

from calculator.clock import BOUNDS, FITTED, Efficiencies
from validation import seconds
from validation.seconds import bounds, by_source, error, fit, in_order, timed, tried

# the median error, and shares of rows within 25 %, and of pairs in order
MEDIAN, NEAR, ORDERED = 0.125, 0.9, 0.95


def check(rows: list[seconds.Timed], constants: Efficiencies, source: str) -> None:
    """Most steps are near what the clock says, and pairs of them in its order."""
    errors = [abs(error(row, constants)) for row in rows]
    assert median(errors) <= MEDIAN, source
    assert sum(off <= 0.25 for off in errors) >= NEAR * len(rows), source
    assert in_order(rows, constants) >= ORDERED, source


left_out = cache(lambda: [*seconds.left_out()])


@cache
def fitted() -> Efficiencies:
    return fit(timed())


def test_every_step_of_one_machine_is_tried() -> None:
    # llm-foundry's tables have 142 rows of 8 GPUs in bf16; fitcheck's archive has 57
    sources = Counter(row.source for row in timed())
    assert sum(sources.values()) == 142 + 57
    assert sources["fitcheck, T4"] == 57


def test_the_calculators_constants_are_those_of_the_fit() -> None:
    for name in FITTED.__slots__:
        assert getattr(FITTED, name) == pytest.approx(getattr(fitted(), name), rel=0.01)


def test_a_source_left_out_is_predicted() -> None:
    for source, own, fitted in left_out():
        check(own, fitted, source)


def test_steps_of_up_to_512_gpus_are_predicted_by_constants_of_at_most_8() -> None:
    # llm-foundry has 67 such rows in bf16, and torchtitan 8 at its cards' own power limit
    counted = by_source(row for row in tried() if not row.differs)
    assert sum(map(len, counted.values())) == 67 + 8 + 1 + 1
    for source, rows in counted.items():
        check(rows, FITTED, source)


def test_a_pipelines_steps_take_as_much_longer_as_measured_for_fewer_micro_batches() -> None:
    # on a card of another generation, and with other kernels, so only ratios are compared
    rows = [row for row in tried() if row.source == "SimuMax, pipelines on 8 B200"]
    for own in (rows[:3], rows[3:]):
        errors = [1 + error(row, FITTED) for row in own]
        assert max(errors) / min(errors) < 1.06


def test_the_answers_bounds_hold_nine_of_ten_steps_never_fitted_on() -> None:
    errors = [error(row, fitted) for _, rows, fitted in left_out() for row in rows]
    errors += [error(row, FITTED) for row in tried() if not row.differs]
    assert pytest.approx(bounds(errors), abs=0.02) == BOUNDS
