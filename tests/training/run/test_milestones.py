import subprocess
import sys

import pytest

from calculator.errors import InputError
from training.run import milestones
from training.run.milestones import INSTALL_SECONDS, Milestone


@pytest.fixture(autouse=True)
def _own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_MILESTONES", "")  # so that the end of the test removes ours
    monkeypatch.delenv("TRAINING_MILESTONES")
    monkeypatch.delenv(INSTALL_SECONDS, raising=False)


def test_seconds_are_cumulative_and_include_installing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INSTALL_SECONDS, "95.2")
    milestones.mark(Milestone.DOCTOR)
    milestones.mark(Milestone.CONNECT)
    reached = milestones.reached()
    assert list(reached) == ["install", "doctor", "connect"]
    assert reached["install"] == 95.2
    assert 95.2 <= reached["doctor"] <= reached["connect"] < 195.2


def test_only_the_first_time_counts() -> None:
    milestones.mark(Milestone.STATE)
    first = milestones.reached()
    milestones.mark(Milestone.STATE)
    assert milestones.reached() == first


def test_nothing_is_reached_before_the_start() -> None:
    assert milestones.reached() == {}


def test_a_child_process_goes_on_with_the_same_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INSTALL_SECONDS, "1000")
    milestones.mark(Milestone.DOCTOR)
    code = (
        "from training.run.milestones import *; mark(Milestone.CONNECT); "
        "print(sorted(reached()), reached()['connect'] >= 1000)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert answer == "['connect', 'doctor', 'install'] True\n"


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf"])
def test_a_time_that_is_none_is_bad_input(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INSTALL_SECONDS, text)
    with pytest.raises(InputError, match=INSTALL_SECONDS):
        milestones.begin()
