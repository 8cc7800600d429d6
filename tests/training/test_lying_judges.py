"""Real processes with the sparse recipe: volunteers judge each other, and one of them lies."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.processes import Swarm, wait_for
from training.data import streaming
from training.rehearsal.command import free_port
from training.run import status
from training.run.recipes import TINY
from training.run.supervisor import Worker

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 60
LIAR = "mallory"


@dataclass
class Scenario(Swarm):
    """Four volunteers, one of which hands in made-up verdicts."""

    recipe: str = "tiny-sparse"

    def play(self) -> None:
        port = str(free_port())
        self.exchange = f"http://127.0.0.1:{port}"
        self.write_run_file([])
        self.start("monitor", "--live", str(self.live), "--port", port)
        self.await_start("monitor")
        self.write_run_file(status.read(self.folder / "monitor")["addresses"])
        for name in ("alice", "bob", "carol"):
            self.start(name, "--name", name, "--no-doctor")
        self.start_liar()
        self.await_start("alice", "bob", "carol", LIAR)
        for worker in self.members.values():
            wait_for(f"{worker.folder.name} to end", lambda w=worker: w.exit_code is not None)
            self.seen[f"exit code of {worker.folder.name}"] = worker.exit_code

    def start_liar(self) -> None:
        folder = self.folder / LIAR
        folder.mkdir()
        command = [sys.executable, "-m", "training.rehearsal.misbehaving", "false-judge", "join"]
        command += [str(self.run_file), "--folder", str(folder), "--host", "127.0.0.1"]
        command += ["--name", LIAR, "--no-doctor"]
        self.members[LIAR] = Worker(command, folder, threads=1, log=folder / "terminal.txt")
        self.members[LIAR].start()

    def said(self, name: str) -> str:
        return (self.folder / name / "terminal.txt").read_text()


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
    for name in swarm.members:
        assert swarm.seen[f"exit code of {name}"] == 0, swarm.said(name)
    assert [line["step"] for line in swarm.lines()] == list(range(1, TOTAL_STEPS + 1))


def test_volunteers_judge_and_the_monitor_believes_them(swarm: Scenario) -> None:
    assert "updates judged by volunteers" in swarm.said("monitor")
    assert any("judged" in swarm.said(name) for name in ("alice", "bob", "carol"))


def test_the_liar_is_named_and_nobody_else(swarm: Scenario) -> None:
    said = [line for line in swarm.said("monitor").splitlines() if "judges no more" in line]
    assert len(said) == 1
    assert said[0].startswith(LIAR)


def test_the_loss_falls_and_everybody_is_credited(swarm: Scenario) -> None:
    losses = [line["loss"] for line in swarm.lines() if line["loss"] is not None]
    assert sum(losses[-3:]) / 3 < sum(losses[:3]) / 3 - 0.1
    board = json.loads((Path(swarm.live) / "peers.json").read_text())
    assert {who["name"] for who in board if who["samples"]} == {"alice", "bob", "carol", LIAR}
