"""Volunteers with local steps behind routers, in network namespaces with real processes."""

import json
from collections.abc import Iterator

import pytest

from tests.training.network.homes import Router, Street, UnavailableError
from tests.training.network.rounds_street import RoundsStreet
from training.data import streaming
from training.run.recipes import TINY

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 25


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoundsStreet]:
    """One whom others can call, and two behind routers that let nobody in."""
    streaming.prepare_shapes(TINY)
    try:
        with Street() as street:
            swarm = RoundsStreet(tmp_path_factory.mktemp("routers"), TOTAL_STEPS, street=street)
            try:
                swarm.begin_behind(alice=Router.NONE, bob=Router.CLOSED, carol=Router.SYMMETRIC)
                swarm.await_end()
                yield swarm
            finally:
                swarm.stop()
    except UnavailableError as error:
        pytest.skip(str(error))


def test_everybody_trains_and_is_credited(swarm: RoundsStreet) -> None:
    swarm.assert_all_ended_well()
    board = {who["name"]: who for who in json.loads((swarm.live / "peers.json").read_text())}
    for name in ("alice", "bob", "carol"):
        assert board[name]["steps"] >= TOTAL_STEPS // 2, board


def test_those_behind_routers_take_files_from_the_one_in_the_open(swarm: RoundsStreet) -> None:
    assert f"from /ip4/{swarm.hosts['alice']}/tcp/31337/p2p/" in swarm.said("alice")
    for name in ("bob", "carol"):
        assert "bytes received came from other volunteers" in swarm.said(name)
        assert "can take files from" not in swarm.said(name)
