"""A volunteer whose network daemon ended: it notices, stops and says so, whatever hangs."""

import asyncio
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hivemind.utils import get_dht_time

from tests.training.forks import Fork
from tests.training.processes import PATIENCE, wait_for
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


@pytest.mark.parametrize(
    "error", [TimeoutError(), KeyError("an error that nobody thought of")], ids=["silence", "other"]
)
def test_other_errors_end_heartbeats_only_if_they_are_long_silence(
    tmp_path: Path,
    ends: list[tuple[float, int]],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    network = network_that_fails(error)
    reporter = beating(tmp_path, network)
    time.sleep(0.2)
    assert reporter.is_alive
    if isinstance(error, TimeoutError):
        monkeypatch.setattr(reporting, "SILENT_SECONDS", 0.2)
    else:
        network.dht = network_that_fails(ConnectionRefusedError(111, "refused")).dht
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


def test_a_process_whose_threads_hang_ends_all_the_same(tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HANGS)
    code, said = Fork([], tmp_path, tmp_path / "terminal.txt", program=program).run(PATIENCE)
    assert code == 75
    assert said.endswith("cannot join the run: the daemon is gone\n")
