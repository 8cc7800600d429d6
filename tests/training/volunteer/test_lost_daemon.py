"""A volunteer whose network daemon ended: it notices, stops and says so, whatever hangs."""

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hivemind.utils import get_dht_time

from tests.training.processes import wait_for
from training.network import worker
from training.network.connection import CannotConnectError, Network
from training.run import supervisor
from training.run.recipes import TINY
from training.run.status import Stage, StatusBoard
from training.volunteer import reporter as reporting
from training.volunteer.contribution import Contribution
from training.volunteer.peer import Volunteer
from training.volunteer.reporter import Reporter

HANGS = """
import threading
from training.network import worker
worker.end_within(0.2, "cannot join the run: the daemon is gone", 75)
threading.Event().wait()
"""


def network_that_fails(error: Exception) -> Any:
    """A network whose process for the DHT passes this error on."""

    def run_coroutine(*_arguments: object, **_options: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future

    network: Any = SimpleNamespace(
        dht=SimpleNamespace(run_coroutine=run_coroutine, get=run_coroutine),
        run="test",
        entry_points=(),
        membership=None,
    )
    network.connections = partial(Network.connections, network)
    network.keep_entry_points = partial(Network.keep_entry_points, network)
    return network


def optimizer_at_step_3() -> Any:
    """As much of an optimizer as a reporter looks at."""
    tracker = SimpleNamespace(
        performance_ema=SimpleNamespace(samples_per_second=1.0),
        global_progress=SimpleNamespace(num_peers=2, eta_next_epoch=get_dht_time()),
    )
    return SimpleNamespace(tracker=tracker, local_epoch=3, scheduled_grads=None)


def beating(folder: Path, network: Any) -> Reporter:
    """A reporter that has started, of a volunteer with this network."""
    board, contribution = StatusBoard(folder), Contribution("a")
    reporter = Reporter(board, network, optimizer_at_step_3(), contribution, TINY, 1)
    reporter.start()
    return reporter


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """The process' promised ends, in seconds and with their exit code."""
    promised: list[tuple[float, int]] = []
    monkeypatch.setattr(
        worker, "end_within", lambda seconds, _why, code: promised.append((seconds, code))
    )
    monkeypatch.setattr(reporting, "BOARD_SECONDS", 0.02)
    monkeypatch.setattr(reporting, "HEARTBEAT_SECONDS", 0.02)
    return promised


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ConnectionRefusedError(111, "refused"), id="before the call"),
        pytest.param(asyncio.IncompleteReadError(b"", 1), id="during the call"),
    ],
)
def test_the_daemons_end_is_noticed_and_bounds_the_process(
    tmp_path: Path, ends: list[tuple[float, int]], error: Exception
) -> None:
    network = network_that_fails(error)
    reporter = beating(tmp_path, network)
    wait_for("the reporter to end", lambda: not reporter.is_alive)
    assert not reporter.is_connected
    time.sleep(0.2)  # several heartbeats
    network.dht.run_coroutine = pytest.fail  # no goodbyes that nobody carries
    reporter.close()
    assert ends == [(reporting.LEAVING_SECONDS, supervisor.CANNOT_CONNECT)]


def test_silence_for_long_is_taken_for_the_end(
    tmp_path: Path, ends: list[tuple[float, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = network_that_fails(TimeoutError())
    reporter = beating(tmp_path, network)
    time.sleep(0.2)
    assert reporter.is_alive
    monkeypatch.setattr(reporting, "SILENT_SECONDS", 0.2)
    wait_for("the reporter to end", lambda: not reporter.is_alive)
    reporter.close()
    assert len(ends) == 1


def test_other_errors_end_no_heartbeats(tmp_path: Path, ends: list[tuple[float, int]]) -> None:
    network = network_that_fails(KeyError("an error that nobody thought of"))
    reporter = beating(tmp_path, network)
    time.sleep(0.2)
    assert reporter.is_alive
    failing = network_that_fails(ConnectionRefusedError(111, "refused"))
    network.dht = failing.dht
    wait_for("the reporter to end", lambda: not reporter.is_alive)
    reporter.close()
    assert len(ends) == 1


def test_a_daemon_that_ends_in_an_outage_is_noticed() -> None:
    reporter = SimpleNamespace(is_connected=False, is_alive=True, stage=Stage.COMPUTING)
    volunteer: Any = SimpleNamespace(
        reporter=reporter,
        optimizer=SimpleNamespace(discard_gradients=lambda: None),
        contribution=SimpleNamespace(discard=lambda: None),
    )
    volunteer._require_daemon = partial(Volunteer._require_daemon, volunteer)
    stop = threading.Event()
    patience = threading.Timer(20.0, stop.set)
    patience.start()
    threading.Timer(0.5, partial(setattr, reporter, "is_alive", False)).start()
    with pytest.raises(CannotConnectError, match="ended unexpectedly"):
        Volunteer._keep_connected(volunteer, stop)
    patience.cancel()


def test_a_process_whose_threads_hang_ends_all_the_same() -> None:
    command = [sys.executable, "-c", HANGS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 75
    assert ended.stderr.endswith("cannot join the run: the daemon is gone\n")
