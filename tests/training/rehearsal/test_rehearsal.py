"""A whole rehearsal by its command: authority, monitor, volunteers, a death, a late joiner."""

import json
import os
import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.training.forks import CommandFork
from training.__main__ import main, make_parser
from training.authority import standin
from training.model import checkpoint
from training.model.build import build_model
from training.rehearsal import command
from training.rehearsal.command import Rehearsal, RehearsalOptions
from training.run import atomic, runfile, supervisor
from training.run.live import ProgressLine
from training.run.recipes import LANGUAGE, TINY
from training.run.supervisor import COMMAND

Rehearse = Callable[..., Rehearsal]


@pytest.fixture
def rehearse(tmp_path: Path) -> Iterator[Rehearse]:
    """Makes a rehearsal with some options that has come to a step, and ends its processes."""
    with ExitStack() as stack:

        def make(step: int = 0, stop: threading.Event | None = None, **options: Any) -> Rehearsal:
            chosen = RehearsalOptions(minutes=1, **{"recipe": "tiny"} | options)
            rehearsal = Rehearsal(chosen, tmp_path, stop or threading.Event())
            stack.callback(rehearsal.stop_all)
            if step:
                rehearsal.live.append(ProgressLine(step, "", 1.0, 64, 0.0, 2, 0, 0, 0, 0, 0))
            return rehearsal

        yield make


@pytest.mark.parametrize(
    ("seconds", "step", "share"),
    [(20.0, 1, 1 / 3), (5.0, 20, 20 / 25), (0.0, 0, 0.0)],
    ids=["slow", "fast", "at once"],
)
def test_what_happens_in_a_rehearsal_follows_its_time_or_its_steps(
    rehearse: Rehearse, seconds: float, step: int, share: float
) -> None:
    """A fast machine makes the 25 steps of a minute in less, and nothing must be left out."""
    assert rehearse(step)._share_done(seconds) == pytest.approx(share)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_request_to_end_stops_the_drawing_of_the_last_pictures(
    rehearse: Rehearse,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    stop = threading.Event()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    rehearsal = rehearse(1, stop)

    def draw_for_long() -> None:
        os.kill(os.getpid(), number)
        assert not stop.wait(20.0), "the request is noted, and drawing goes on"
        pytest.fail("the request is not heard")

    try:
        supervisor.stop_on_signals(stop)
        handlers = {one: signal.getsignal(one) for one in before}
        monkeypatch.setattr(rehearsal, "_show_samples", draw_for_long)
        assert rehearsal.conclude() == 1
        assert "stopped while drawing" in capsys.readouterr().out
        assert {one: signal.getsignal(one) for one in before} == handlers
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@pytest.mark.swarm
@pytest.mark.filterwarnings("ignore")  # of the libraries that draw
def test_a_rehearsal_trains_and_ends_with_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (command, standin):
        monkeypatch.setattr(module, "Worker", CommandFork)
    monkeypatch.setattr(command, "CANDIDATES", 8)
    monkeypatch.setattr(command, "count_steps", lambda _options: 12)  # and so not by time
    folder = tmp_path / "rehearsal"
    words = ["--minutes", "30", "--recipe", "tiny", "--peers", "2", "--folder", str(folder)]
    assert main(["rehearse", *words]) == 0
    said = capsys.readouterr().out
    assert "'s machine crashes during its work" in said
    assert "pictures.png, the best 4 of 8 pictures of each caption" in said
    with Image.open(folder / "pictures.png") as sheet:
        assert sheet.width > 4 * 128
        assert sheet.height > len(TINY.generation.prompts) * 128
    card = json.loads((folder / "live" / "run.json").read_text())
    assert card["finished"] > card["start"]
    told = re.search(r"join from another terminal:\n  HF_TOKEN=.+ \\\n  (.+)", said)
    typed = shlex.split(told[1])
    assert typed[1:3] == ["-m", "training"]
    assert make_parser().parse_args(typed[3:]).run == str(folder / "run.toml")


@pytest.mark.parametrize("is_open", [True, False])
def test_an_open_rehearsal_asks_for_no_account_and_says_where_a_tab_can_join(
    rehearse: Rehearse,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_open: bool,
) -> None:
    rehearsal = rehearse(recipe="tiny-sparse", is_open=is_open)
    awaited: list[str] = []

    def await_start(_worker: supervisor.Worker, who: str) -> dict[str, list[str]]:
        awaited.append(who)
        tab = {"address": rehearsal.exchange} if is_open else None
        atomic.write_json(rehearsal.live.path / "run.json", {"tab": tab})
        return {"addresses": ["/p2p/peer"]}

    monkeypatch.setattr(supervisor.Worker, "start", lambda _worker: None)
    monkeypatch.setattr(rehearsal, "_await_start", await_start)
    monkeypatch.setattr(rehearsal, "_look_on", lambda: None)
    rehearsal.run()
    said = capsys.readouterr().out
    run = runfile.load(str(rehearsal.run_file))
    parsed = make_parser().parse_args(rehearsal.monitor.command[len(COMMAND) :])
    assert rehearsal.exchange == f"http://127.0.0.1:{parsed.port}", "the monitor is the host"
    assert (run.authority == "") is is_open
    assert awaited == (["the monitor"] if is_open else ["the authority", "the monitor"])
    assert ("--authority-folder" in rehearsal.monitor.command) is not is_open
    assert ("HF_TOKEN" in said) is not is_open
    assert (f"browser's tab:     {rehearsal.exchange}/live/?run=rehearsal" in said) is is_open


def test_language_models_continue_texts(
    rehearse: Rehearse, capsys: pytest.CaptureFixture[str]
) -> None:
    rehearsal = rehearse(1, recipe="language")
    checkpoint.publish(rehearsal.live, build_model(LANGUAGE), 1, None, "")
    assert rehearsal.conclude() == 0
    assert f"  {LANGUAGE.generation.prompts[0]} " in capsys.readouterr().out
