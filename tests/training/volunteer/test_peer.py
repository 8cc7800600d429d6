"""training/volunteer/peer: a newcomer's first steps, advice after a failure, priority."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from training.volunteer import peer
from training.volunteer.peer import NICENESS, Volunteer, give_way


@pytest.mark.parametrize(
    ("others", "own_step", "late", "actions"),
    [
        pytest.param((0,), 0, True, ["look", "announce", "checkpoint"], id="begins with others"),
        pytest.param((7,), 0, False, ["look", "download"], id="is behind: announces nothing"),
        pytest.param((7,), 0, True, ["look", "announce", "download"], id="finds the run late"),
        # not from the first step, because they all see others who have nothing either
        pytest.param((0, 0), 0, False, ["look", "announce", "checkpoint"], id="all come back"),
        pytest.param((), 0, False, ["look", "announce", "checkpoint"], id="is alone"),
        pytest.param((5,), 5, False, ["look", "announce"], id="is as far as the others"),
    ],
)
def test_a_newcomer_takes_the_state_where_somebody_has_one(
    monkeypatch: pytest.MonkeyPatch,
    others: tuple[int, ...],
    own_step: int,
    late: bool,
    actions: list[str],
) -> None:
    """Others are at these steps; if `late`, they are seen only when it announces itself."""
    monkeypatch.setattr(peer, "FIRST_NEWS_SECONDS", 1.2)
    done: list[str] = []

    def look_now(_seconds: float) -> None:
        done.append("look")
        if not late:
            find()

    def find() -> None:
        optimizer.tracker.paces = dict.fromkeys(["other"] * len(others), 1.0)
        optimizer.is_behind = any(step > own_step for step in others)

    def announce_arrival() -> None:
        done.append("announce")
        find()

    tracker = SimpleNamespace(paces={}, look_now=look_now, announce_arrival=announce_arrival)
    optimizer = SimpleNamespace(tracker=tracker, is_behind=False, local_epoch=own_step)
    volunteer = Mock(optimizer=optimizer)
    volunteer.run.initial_peers = ("somebody",)
    volunteer.recovery.download = lambda: done.append("download")
    volunteer.recovery.take_checkpoint = lambda: done.append("checkpoint")
    volunteer._are_others_here = lambda: Volunteer._are_others_here(volunteer)
    Volunteer._catch_up(volunteer, threading.Event())
    assert done == actions


@pytest.mark.parametrize(
    ("load", "advice"), [(13.5, "14 tasks want each of its cores"), (1.0, "run the doctor")]
)
def test_a_busy_machine_is_named_where_the_doctor_would_find_nothing(
    monkeypatch: pytest.MonkeyPatch, load: float, advice: str
) -> None:
    monkeypatch.setattr(peer, "_load_per_core", lambda: load)
    volunteer = Mock()
    volunteer.network.dht.client_mode = False
    Volunteer._explain_failure(volunteer, "no group of volunteers was found")
    volunteer.board.say.assert_called_once()
    (said,) = volunteer.board.say.call_args.args
    assert said.startswith("the step failed: no group of volunteers was found. Trying again; ")
    assert advice in said


@pytest.mark.skipif(not hasattr(os, "nice"), reason="priorities are Unix's")
def test_only_the_thread_that_computes_gives_way() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    with ThreadPoolExecutor(1, initializer=give_way) as computing:
        assert computing.submit(priority).result() == min(19, before + NICENESS)
    assert priority() == before
