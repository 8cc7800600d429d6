"""The evidence that the calculator carries is that of the committed rows."""

from calculator.measured.sets import MEASURED, RANDOM, WORDS
from templates.pieces.comparisons import comparisons_on
from validation.evidence import bound, measured, written


def test_the_calculator_carries_the_committed_rows() -> None:
    names: dict[str, object] = {}
    exec(written(measured(comparisons_on("counting")), RANDOM), names)
    assert names["WORDS"] == WORDS
    assert names["MEASURED"] == MEASURED


def test_98_of_100_errors_are_within_the_bound() -> None:
    assert bound([number / 1000 for number in range(100)]) == 0.097
    assert bound([]) == 0
