"""Steps of a newcomer before its first gradient, depending on what it finds."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from training.volunteer import peer
from training.volunteer.peer import Volunteer


def newcomer(
    monkeypatch: pytest.MonkeyPatch, others: tuple[int, ...], own_step: int = 0, late: bool = False
) -> list[str]:
    """Actions of a newcomer when others are at these steps; if `late`, they are seen later on."""
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
    volunteer: Any = SimpleNamespace(
        run=SimpleNamespace(initial_peers=("somebody",)),
        network=SimpleNamespace(dht=SimpleNamespace(peer_id="me")),
        reporter=SimpleNamespace(stage=None, publish=lambda _state: None),
        recovery=SimpleNamespace(
            download=lambda: done.append("download"),
            take_checkpoint=lambda: done.append("checkpoint"),
        ),
        optimizer=optimizer,
    )
    volunteer._are_others_here = lambda: Volunteer._are_others_here(volunteer)
    Volunteer._catch_up(volunteer, threading.Event())
    return done


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
    assert newcomer(monkeypatch, others, own_step, late) == actions
