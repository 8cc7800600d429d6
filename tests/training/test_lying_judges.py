"""Real processes with the sparse recipe: volunteers judge each other, and one of them lies."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.processes import RoundsSwarm, wait_for
from training.access.grants import peer_id_of
from training.data import streaming
from training.monitor import banned_judges
from training.network.connection import Identity
from training.run.recipes import TINY
from training.run.supervisor import Worker
from training.sparse import assignment, envelope
from training.sparse.store import FolderStore

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 60
LIAR = "mallory"


@dataclass
class Scenario(RoundsSwarm):
    """Four volunteers, one of which hands in made-up verdicts, and a monitor that is killed."""

    def play(self) -> None:
        port = self.begin("alice", "bob", "carol")
        self.start_liar()
        self.await_start(LIAR)
        wait_for("the liar to be found out", lambda: "judges no more" in self.said("monitor"))
        self.seen["last step before the restart"] = self.last_line()
        self.members["monitor"].kill()
        self.start_monitor(port)
        self.await_end()

    def judges(self) -> dict[int, set[str]]:
        """The judges of each round whose files are still there."""
        store = FolderStore(self.folder / "monitor" / "exchange")
        found = {}
        for name in store.names(assignment.FOLDER):
            content = store.get(str(store.find(name)), 10**6)
            body = envelope.open_file("assignment", content, 10**6).body
            found[int(name.rpartition("/")[2])] = set(json.loads(body))
        return found

    def start_liar(self) -> None:
        folder = self.folder / LIAR
        folder.mkdir()
        command = [sys.executable, "-m", "training.rehearsal.misbehaving", "false-judge", "join"]
        command += [str(self.run_file), "--folder", str(folder), "--host", "127.0.0.1"]
        command += ["--name", LIAR, "--no-doctor"]
        self.members[LIAR] = Worker(command, folder, threads=1, log=folder / "terminal.txt")
        self.members[LIAR].start()


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    streaming.prepare_shapes(TINY)
    swarm = Scenario(tmp_path_factory.mktemp("judges"), TOTAL_STEPS)
    try:
        swarm.play()
    finally:
        swarm.stop()
    return swarm


def test_the_run_makes_all_its_steps_and_everybody_ends_well(swarm: Scenario) -> None:
    swarm.assert_all_ended_well()


def test_volunteers_judge_and_the_monitor_believes_them(swarm: Scenario) -> None:
    assert "updates judged by volunteers" in swarm.said("monitor")
    assert any("judged" in swarm.said(name) for name in ("alice", "bob", "carol"))


def test_the_liar_is_named_and_nobody_else(swarm: Scenario) -> None:
    said = [line for line in swarm.said("monitor").splitlines() if "judges no more" in line]
    assert len(said) == 1
    assert said[0].startswith(LIAR)


def test_a_monitor_started_again_lets_the_liar_judge_no_more(swarm: Scenario) -> None:
    liar = peer_id_of(Identity.read(swarm.folder / LIAR).public_key)
    assert banned_judges.read(swarm.folder / "monitor") == {liar}
    since = swarm.seen["last step before the restart"] + 1  # a round may have been open
    judges = [who for number, who in swarm.judges().items() if number > since]
    assert judges
    assert not any(liar in who for who in judges)


def test_the_loss_falls_and_everybody_is_credited(swarm: Scenario) -> None:
    swarm.assert_loss_fell()
    board = json.loads((Path(swarm.live) / "peers.json").read_text())
    assert {who["name"] for who in board if who["samples"]} == {"alice", "bob", "carol", LIAR}
