"""training/monitor/rounds: the monitor of a run with local steps, in this process."""

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.disk import full
from training.model import checkpoint
from training.model.build import build_model
from training.monitor import rounds
from training.monitor.monitor import MonitorOptions
from training.monitor.rounds import RoundsMonitor
from training.network.connection import Endpoint
from training.run import atomic
from training.run.live import ProgressLine, timestamp
from training.run.recipes import TINY, TINY_SPARSE
from training.run.runfile import RunFile
from training.sparse import catching_up, closing
from training.sparse.host import Closed
from training.sparse.shared import flatten

Open = Callable[[], RoundsMonitor]


@pytest.fixture
def open_monitor(tmp_path: Path) -> Open:
    """Opens the same run's monitor again and again."""
    key = RSAPrivateKey()
    run = RunFile(name="our-run", recipe=TINY_SPARSE.name)
    endpoint = Endpoint("127.0.0.1", 0, (), True)
    options = MonitorOptions(tmp_path / "monitor", tmp_path / "live", "run.toml", endpoint)
    return lambda: RoundsMonitor(run, options, key)


def test_a_monitor_without_its_rounds_files_goes_on_from_the_published_weights(
    open_monitor: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = open_monitor()
    with torch.no_grad():
        for parameter in monitor.model.parameters():
            parameter.add_(1.0)
    checkpoint.publish(monitor.live, monitor.model, 5, 2.0, timestamp(0.0))
    for step in range(1, 8):
        monitor.live.append(ProgressLine(step, timestamp(step), 2.0, 16, 1.0, 1, 0, 0, 0, 0, 0))
    monitor.close()
    shutil.rmtree(tmp_path / "monitor" / "exchange")

    again = open_monitor()
    published = flatten([p for p in again.model.parameters() if p.requires_grad])
    state = catching_up.join(again.host.swarm)
    assert state.digest() == again.host.state.digest()
    assert torch.equal(state.weights, published)
    assert not torch.equal(published, flatten(list(build_model(TINY).parameters())))
    assert state.round == 8, "a round that no volunteer has been in, so that all take the state"
    found = closing.find(again.host.swarm, 7)
    assert found.taken == ()
    assert "going on from the weights of step 5" in capsys.readouterr().out
    assert [line["step"] for line in again.live.progress.read()] == list(range(1, 9))
    again.close()


def test_the_records_of_volunteers_outlive_the_monitor(open_monitor: Open, tmp_path: Path) -> None:
    monitor = open_monitor()
    saved = monitor.books.state() | {"records": {"QmLiar": {"rounds": 4, "mean": 0.5}}}
    monitor.close()
    atomic.write_json(tmp_path / "monitor" / "rounds.json", saved)
    again = open_monitor()
    assert again.judge.state()["QmLiar"]["mean"] == 0.5
    again.close()


def test_a_step_of_a_full_disk_is_written_with_the_next(open_monitor: Open, tmp_path: Path) -> None:
    monitor = open_monitor()
    lines = [ProgressLine(n, timestamp(n), 2.0, 16, 1.0, 1, 0, 0, 0, 0, 0) for n in (1, 2)]
    monitor.note_beginning("steps")
    with full(40):
        monitor.write(lines[0])
    assert monitor.step == 1
    monitor.write(lines[1])
    assert [line["step"] for line in monitor.live.progress.read()] == [1, 2]
    monitor.close()


def test_each_round_frees_memory(open_monitor: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[int] = []
    monitor = open_monitor()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=trimmed.append))
    for number in range(2):
        monkeypatch.setattr(monitor.host, "close_if_due", lambda _, n=number: Closed(n, (), {}))
        monitor.look()
    assert trimmed == [0, 0]
    monitor.close()


def test_memory_stays_without_a_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", Mock(side_effect=[OSError("none"), object()]))
    for _ in range(2):
        rounds.give_memory_back()
