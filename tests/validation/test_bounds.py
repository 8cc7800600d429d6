"""Computed reserved bytes against real cards' figures, by kind of plan."""

from statistics import median

import pytest

from calculator.autograd.mode import Checkpointing
from calculator.bounds import FUSED, PACKED, WHOLE, WITH_SCORES, Range, range_of
from calculator.plan import Plan
from calculator.resolution import resolve
from templates.pieces.comparisons import scores
from tests.calculator.plans import Case
from tests.calculator.tallied import counted
from validation.compare import compare
from validation.published_rows import Figure, Row
from validation.rows import read_rows


def steps_of(*cards: str) -> list[tuple[Range, float]]:
    """Of each step its range, and real reserved bytes over computed ones."""
    return [
        (range_of(plan_of(score.row)), score.measured / score.answer.reserved)
        for score in scores()
        if score.source.key in cards and score.figure is Figure.OF_ALLOCATOR
    ]


def plan_of(row: Row) -> Plan:
    with row.shape as shape:
        return resolve(shape, row.plan)


def within(steps: list[tuple[Range, float]]) -> int:
    return sum(found.low <= 1000 * ratio <= found.high for found, ratio in steps)


@pytest.mark.parametrize("card", ["t4", "h100", "h200"])
def test_reserved_bytes_of_a_card_are_within_eight_percent_in_nine_of_ten(card: str) -> None:
    errors = sorted(abs(ratio - 1) for _, ratio in steps_of(card))
    assert median(errors) <= 0.02
    assert errors[len(errors) * 9 // 10] <= 0.08


@pytest.mark.parametrize("kind", [FUSED, PACKED, WITH_SCORES, WHOLE])
def test_a_range_holds_nine_of_ten_steps_that_it_stands_on(kind: Range) -> None:
    steps = [(found, ratio) for found, ratio in steps_of("t4", "h100") if found is kind]
    assert len(steps) == kind.steps
    assert within(steps) >= 0.9 * len(steps)


def test_ranges_hold_random_steps_of_a_card_that_none_is_fitted_to() -> None:
    steps = steps_of("h200")
    whole = [(found, ratio) for found, ratio in steps if found is WHOLE]
    assert (len(steps), len(whole)) == (157, 106)
    assert within(steps) >= 0.95 * len(steps)
    assert within(whole) >= 0.95 * len(whole)


def test_measured_steps_hold_at_most_what_the_estimate_says_in_three_steps_of_a_program() -> None:
    # in T5's checkpoints a tensor may have the size of a weight's gradient, and is taken for one
    every = [
        item
        for item in compare([*read_rows()][::120])
        if item.family != "t5" or item.report.plan.checkpointing is not Checkpointing.FULL
    ]
    assert len(every) > 25
    most = [counted(Case(one.configuration.architecture, one.configuration.plan)) for one in every]
    assert most == pytest.approx([one.predicted for one in every], rel=1e-3)
    exact = [found == one.predicted for found, one in zip(most, every, strict=True)]
    assert sum(exact) >= 0.98 * len(exact)
