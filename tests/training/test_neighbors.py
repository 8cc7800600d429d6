"""Real processes with the sparse recipe: volunteers take files from each other; one is killed."""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.training.processes import RoundsSwarm, wait_for
from training.data import streaming
from training.rehearsal.command import free_port
from training.run.recipes import TINY

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 40
EARLY = 8  # steps


def is_open(port: str) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", int(port))) == 0


@dataclass
class Scenario(RoundsSwarm):
    """Two volunteers that others can reach, and one that they cannot."""

    ports: dict[str, str] = field(default_factory=dict)

    def play(self) -> None:
        self.begin()
        for name in ("alice", "bob"):
            self.ports[name] = str(free_port())
            self.start(name, "--name", name, "--no-doctor", "--port", self.ports[name])
        self.start("carol", "--name", "carol", "--no-doctor")
        self.await_start("alice", "bob", "carol")
        wait_for("the first rounds", lambda: self.last_line() >= EARLY)
        self.seen["open"] = {name: is_open(port) for name, port in self.ports.items()}
        self.members.pop("alice").kill()
        wait_for("alice's daemon to end", lambda: not is_open(self.ports["alice"]))
        self.await_end()


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    streaming.prepare_shapes(TINY)
    swarm = Scenario(tmp_path_factory.mktemp("neighbors"), TOTAL_STEPS)
    try:
        swarm.play()
    finally:
        swarm.stop()
    return swarm


def test_the_run_goes_on_without_the_one_that_was_killed(swarm: Scenario) -> None:
    swarm.assert_all_ended_well()
    swarm.assert_loss_fell()


def test_volunteers_name_the_port_that_was_asked_for(swarm: Scenario) -> None:
    assert swarm.seen["open"] == {"alice": True, "bob": True}
    for name, port in swarm.ports.items():
        assert f"from /ip4/127.0.0.1/tcp/{port}/p2p/" in swarm.said(name)
    assert "can take files from" not in swarm.said("carol")


def test_both_kinds_of_volunteers_take_files_from_others(swarm: Scenario) -> None:
    """Nobody can reach carol; she takes what the others have."""
    for name in ("bob", "carol"):
        said = re.search(r"([\d,]+) of [\d,]+ bytes received came from", swarm.said(name))
        assert said is not None, swarm.said(name)
        assert int(said[1].replace(",", "")) > 0
