"""A volunteer that leaves politely: everything that it computed has arrived before it is gone."""

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.sparse.clocks import Clock
from tests.training.volunteer.test_lost_daemon import optimizer_at_step_3
from training.network.connection import Endpoint, Identity, Network
from training.records import reports
from training.records.orders import EndOrder
from training.records.owners import contributor_id
from training.run.live import PeerState
from training.run.recipes import TINY
from training.run.status import StatusBoard
from training.volunteer.contribution import TOLD_SECONDS, Contribution
from training.volunteer.reporter import Reporter

pytestmark = [pytest.mark.swarm, pytest.mark.filterwarnings("ignore")]


def reporter_of(network: Network, folder: Path, monitor: Network, steps: int) -> Reporter:
    """The reporter of a volunteer that has made so many steps."""
    contribution = Contribution("guest")
    for step in range(1, steps + 1):
        contribution.add(160, 4.0)
        contribution.finish_step(step, SimpleNamespace(sent=0, received=0))  # type: ignore[arg-type]
    board, moderators = StatusBoard(folder), frozenset({str(monitor.dht.peer_id)})
    return Reporter(board, network, optimizer_at_step_3(), contribution, TINY, 1, moderators)


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
                patch.setattr("training.volunteer.reporter.time", SimpleNamespace(monotonic=clock))
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
    reporter: Any = SimpleNamespace(
        network=SimpleNamespace(keep_entry_points=lambda: True),
        publish=lambda _state: None,
        order=None,
        is_over=False,
        _find=lambda kind: next(found) if kind is EndOrder else None,
    )
    heard = []
    for _ in range(3):
        Reporter._beat(reporter, PeerState.TRAINING)
        heard.append(reporter.is_over)
    assert heard == [False, True, True]
