import subprocess
import sys
from types import SimpleNamespace

import pytest

from calculator.errors import InputError
from tests.training.sparse.clocks import Clock
from training.run import milestones
from training.run.milestones import INSTALL_SECONDS, Milestone


@pytest.fixture(autouse=True)
def _own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_MILESTONES", "")  # so that the end of the test removes ours
    monkeypatch.delenv("TRAINING_MILESTONES")
    monkeypatch.delenv(INSTALL_SECONDS, raising=False)


def test_seconds_are_cumulative_from_installing_on_and_the_first_time_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(milestones, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setenv(INSTALL_SECONDS, "95.2")
    assert milestones.reached() == {}
    for milestone in (Milestone.DOCTOR, Milestone.CONNECT, Milestone.DOCTOR):
        milestones.mark(milestone)
        clock.now += 1.5
    assert list(milestones.reached().items()) == [
        ("install", 95.2),
        ("doctor", 95.2),
        ("connect", 96.7),
    ]


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
