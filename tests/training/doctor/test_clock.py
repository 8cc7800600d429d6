import pytest

from training.doctor import clock
from training.doctor.clock import Reading
from training.doctor.findings import Verdict


@pytest.mark.parametrize(
    ("ahead", "uncertainty", "verdict"),
    [
        (2.9, 0.0, Verdict.FINE),
        (-2.9, 0.0, Verdict.FINE),
        (3.4, 0.5, Verdict.WARNING),  # it may be within 3 s
        (3.6, 0.5, Verdict.PROBLEM),
        (-60.0, 5.0, Verdict.PROBLEM),
    ],
)
def test_three_seconds_are_tolerated(ahead: float, uncertainty: float, verdict: Verdict) -> None:
    assert clock.judge([Reading("theirs", ahead, uncertainty)]).verdict is verdict


def test_the_surest_reading_counts() -> None:
    readings = [Reading("a web server", 9.0, 0.6), Reading("the monitor", 0.1, 0.01)]
    finding = clock.judge(readings)
    assert finding.verdict is Verdict.FINE
    assert finding.cause == "0.1 s ahead of the monitor"


def test_without_a_reading_nothing_is_claimed() -> None:
    assert clock.judge([]).verdict is Verdict.WARNING


def test_half_the_way_is_the_uncertainty() -> None:
    reading = clock.read("theirs", told=100.0, asked_at=101.0, answered_at=103.0)
    assert (reading.ahead, reading.uncertainty) == (2.0, 1.0)
