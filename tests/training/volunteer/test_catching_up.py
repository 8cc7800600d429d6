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


def test_whoever_begins_a_run_with_others_announces_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert newcomer(monkeypatch, (0,), late=True) == ["look", "announce", "checkpoint"]


def test_whoever_is_behind_takes_the_state_and_announces_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert newcomer(monkeypatch, (7,)) == ["look", "download"]


def test_whoever_finds_the_run_late_takes_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    assert newcomer(monkeypatch, (7,), late=True) == ["look", "announce", "download"]


def test_all_who_come_back_to_a_run_go_on_from_its_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not from the first step, because they all see others who have nothing either."""
    assert newcomer(monkeypatch, (0, 0))[-1] == "checkpoint"
    assert newcomer(monkeypatch, ())[-1] == "checkpoint"
    assert newcomer(monkeypatch, (5,), own_step=5) == ["look", "announce"]
