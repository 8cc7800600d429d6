"""The evidence that the calculator carries is that of the committed rows."""

from calculator.data import read_data
from templates.pieces.comparisons import comparisons_on
from validation.evidence import bound, measured, written


def test_the_calculator_carries_the_committed_rows() -> None:
    carried = read_data("evidence.json")
    assert written(measured(comparisons_on("counting")), carried["random"]) == carried


def test_98_of_100_errors_are_within_the_bound() -> None:
    assert bound([number / 1000 for number in range(100)]) == 0.097
    assert bound([]) == 0
