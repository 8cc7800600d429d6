"""A whole rehearsal by its command: authority, monitor, volunteers, a death, a late joiner."""

import os
import re
import shlex
import signal
import threading
from pathlib import Path

import pytest
from PIL import Image

from tests.training.rehearsal.rehearsals import rehearse
from training.__main__ import make_parser
from training.rehearsal.command import Rehearsal, RehearsalOptions
from training.run import supervisor
from training.run.live import ProgressLine
from training.run.recipes import TINY


@pytest.mark.parametrize(
    ("seconds", "step", "share"),
    [(20.0, 1, 1 / 3), (5.0, 20, 20 / 25), (0.0, 0, 0.0)],
    ids=["slow", "fast", "at once"],
)
def test_what_happens_in_a_rehearsal_follows_its_time_or_its_steps(
    tmp_path: Path, seconds: float, step: int, share: float
) -> None:
    """A fast machine makes the 25 steps of a minute in less, and nothing must be left out."""
    rehearsal = Rehearsal(RehearsalOptions(minutes=1, recipe="tiny"), tmp_path, threading.Event())
    try:
        if step:
            rehearsal.live.append(ProgressLine(step, "", 1.0, 64, 0.0, 2, 0, 0, 0, 0, 0))
        assert rehearsal._share_done(seconds) == pytest.approx(share)
    finally:
        rehearsal.authority.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_request_to_end_stops_the_drawing_of_the_last_pictures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    stop = threading.Event()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    rehearsal = Rehearsal(RehearsalOptions(minutes=1, recipe="tiny"), tmp_path, stop)

    def draw_for_long() -> None:
        os.kill(os.getpid(), number)
        assert not stop.wait(20.0), "the request is noted, and drawing goes on"
        pytest.fail("the request is not heard")

    try:
        supervisor.stop_on_signals(stop)
        handlers = {one: signal.getsignal(one) for one in before}
        rehearsal.live.append(ProgressLine(1, "", 1.0, 64, 0.0, 2, 0, 0, 0, 0, 0))
        monkeypatch.setattr(rehearsal, "_show_samples", draw_for_long)
        assert rehearsal.conclude() == 1
        assert "stopped while drawing" in capsys.readouterr().out
        assert {one: signal.getsignal(one) for one in before} == handlers
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        rehearsal.authority.stop()


@pytest.mark.swarm
def test_a_rehearsal_trains_and_ends_with_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "rehearsal"
    said = rehearse(folder, "--minutes", "1", "--recipe", "tiny")
    with Image.open(folder / "pictures.png") as sheet:
        assert sheet.height > len(TINY.generation.prompts) * 128
    told = re.search(r"join from another terminal:  HF_TOKEN=.+ \\\n  (.+)", said)
    assert told is not None
    command = shlex.split(told[1])
    assert command[1:3] == ["-m", "training"]
    assert make_parser().parse_args(command[3:]).run == str(folder / "run.toml")
