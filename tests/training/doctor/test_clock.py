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


def test_a_date_stands_for_the_middle_of_its_second() -> None:
    headers = {"Date": "Thu, 01 Jan 1970 00:01:40 GMT"}  # second 100
    reading = clock.read_header("web", headers, 100.4, 100.6)
    assert reading is not None
    assert reading.ahead == pytest.approx(0.0)
    assert reading.uncertainty == pytest.approx(0.6)


def test_the_age_of_a_cached_answer_is_added() -> None:
    headers = {"Date": "Thu, 01 Jan 1970 00:01:40 GMT", "Age": "60"}
    reading = clock.read_header("web", headers, 160.0, 161.0)
    assert reading is not None
    assert reading.ahead == pytest.approx(0.0)
    assert reading.uncertainty == pytest.approx(1.5)


@pytest.mark.parametrize("headers", [{}, {"Date": "yesterday"}, {"Date": ""}])
def test_a_header_that_is_no_date_is_no_reading(headers: dict[str, str]) -> None:
    assert clock.read_header("web", headers, 0.0, 1.0) is None
