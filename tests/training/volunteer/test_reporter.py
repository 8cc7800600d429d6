"""training/volunteer/reporter: a lost network daemon is noticed, all arrives before leaving."""

import asyncio
import threading
import time
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hivemind.utils import get_dht_time

from tests.training.forks import Fork
from tests.training.processes import PATIENCE, wait_for
from tests.training.sparse.clocks import Clock
from training.network import worker
from training.network.connection import CannotConnectError, Endpoint, Identity, Network
from training.network.traffic import Traffic
from training.records import reports
from training.records.orders import EndOrder
from training.records.owners import contributor_id
from training.run import supervisor
from training.run.live import PeerState
from training.run.recipes import TINY
from training.run.status import Stage, StatusBoard
from training.volunteer import reporter as reporting
from training.volunteer.contribution import TOLD_SECONDS, Contribution
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
    failed: Future[Any] = Future()
    failed.set_exception(error)
    dht = SimpleNamespace(run_coroutine=Mock(return_value=failed), get=Mock(return_value=failed))
    network: Any = SimpleNamespace(dht=dht, run="test", entry_points=(), membership=None)
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
    volunteer = Mock(reporter=reporter)
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


def reporter_of(network: Network, folder: Path, monitor: Network, steps: int) -> Reporter:
    """The reporter of a volunteer that has made so many steps."""
    contribution = Contribution("guest")
    for step in range(1, steps + 1):
        contribution.add(160, 4.0)
        contribution.finish_step(step, Traffic(0, 0))
    board, moderators = StatusBoard(folder), frozenset({str(monitor.dht.peer_id)})
    return Reporter(board, network, optimizer_at_step_3(), contribution, TINY, 1, moderators)


@pytest.mark.swarm
@pytest.mark.filterwarnings("ignore")
def test_all_steps_arrive_though_the_monitor_was_away_and_the_last_before_the_network_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a monitor that was away for half a minute, which lacked five steps for ever.

    And of a guest that pressed Ctrl-C: 1,728 samples computed, 160 of them never credited.
    """
    own, identity = (Identity.read(tmp_path / name) for name in ("monitor", "guest"))
    steps, clock, here = 2 * reports.RECENT_STEPS, Clock(), Endpoint("127.0.0.1")
    with closing(Network("leaving", own, (), here, may_be_alone=True)) as monitor:
        with closing(Network("leaving", identity, monitor.addresses(), here)) as guest:
            reporter_of(guest, tmp_path, monitor, 3).close()  # who takes no report keeps nobody
            reporter = reporter_of(guest, tmp_path, monitor, steps)
            with monkeypatch.context() as patch:
                patch.setattr(reporting, "time", SimpleNamespace(monotonic=clock))
                assert not reporter.publish(PeerState.TRAINING).result(reports.CALL_SECONDS)
                reports.serve(monitor.dht)
                heard = []
                for clock.now in (20.0, 30.0, 20.0 + TOLD_SECONDS, 60.0):
                    assert reporter.publish(PeerState.TRAINING).result(reports.CALL_SECONDS)
                    told = reports.collect(monitor.dht, 10.0)[contributor_id(identity.subkey)]
                    heard.append([step.step for step in told.recent])
            everything = list(range(1, steps + 1))
            assert heard == [everything] * 3 + [everything[-reports.RECENT_STEPS :]]
            reporter.close()
        told = reports.collect(monitor.dht, 10.0)[contributor_id(identity.subkey)]
    assert (told.state, told.samples) == (PeerState.LEFT.value, 160 * steps)
    assert told.recent[-1].step == steps


def test_a_run_that_was_ended_stays_over_when_the_order_has_expired() -> None:
    """Whoever was in a long step meanwhile hears of it afterwards."""
    found = iter([None, EndOrder(time=1.0), None])
    reporter = Mock(is_over=False, _find=lambda kind: next(found) if kind is EndOrder else None)
    heard = []
    for _ in range(3):
        Reporter._beat(reporter, PeerState.TRAINING)
        heard.append(reporter.is_over)
    assert heard == [False, True, True]
