"""The evidence that the calculator carries is that of the committed rows."""

from calculator.data import read_data
from templates.pieces.comparisons import comparisons_on
from validation.evidence import measured, written


def test_the_calculator_carries_the_committed_rows() -> None:
    carried = read_data("evidence.json")
    assert written(measured(comparisons_on("counting")), carried["random"]) == carried
