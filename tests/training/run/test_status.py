import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.disk import full
from training.run import status
from training.run.status import Stage, Status, StatusBoard


def test_the_line_says_all_that_a_volunteer_wants_to_know() -> None:
    figures = Status(
        started=True,
        stage=Stage.COMPUTING,
        step=41,
        total_steps=31_250,
        loss=3.4123,
        samples=1280,
        pending=16,
        target=4096,
        peers=3,
        seconds_to_update=12.3,
    )
    assert figures.in_words() == (
        "step 41 of 31,250 · loss 3.412 · you 1,280 sequences, 16 of the next 4,096 · 3 peers · "
        "next update in 12 s · computing"
    )
    by_time = replace(figures, target=0).in_words()  # a round without a number of sequences
    assert "you 1,280 sequences, 16 in this round · 3 peers" in by_time


def test_a_log_gets_a_line_a_step_and_not_a_line_a_moment(tmp_path: Path) -> None:
    stream = io.StringIO()
    board = StatusBoard(tmp_path, stream)
    board.status.started = True
    for step in (1, 2):
        board.status.step = step
        for stage in (Stage.COMPUTING, Stage.WAITING, Stage.AVERAGING, Stage.COMPUTING):
            board.status.stage = stage
            board.show()
    assert len(stream.getvalue().splitlines()) == 2
    board.status.stage = Stage.DISCONNECTED
    board.show()
    assert len(stream.getvalue().splitlines()) == 3


def test_a_terminal_gets_one_line_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    board = StatusBoard(tmp_path, stream)
    for _ in range(3):
        board.show()
    assert stream.getvalue().count("\r") == 3
    assert "\n" not in stream.getvalue()


def test_a_volunteer_on_a_full_disk_still_shows_what_it_does(tmp_path: Path) -> None:
    terminal = io.StringIO()
    board = StatusBoard(tmp_path, terminal)
    with full(10):
        board.show()
    assert "starting" in terminal.getvalue()
    assert status.read(tmp_path) == {}
    board.show()
    assert status.read(tmp_path)["stage"] == "starting"
