"""Real processes with the sparse recipe: volunteers, a host that dies, a latecomer."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.processes import RoundsSwarm, wait_for
from training.access.grants import peer_id_of
from training.data import streaming
from training.model import checkpoint
from training.model.checkpoint import DRAWING
from training.network.connection import Identity
from training.records.owners import contributor_of
from training.run import status
from training.run.live import LiveFolder, read_samples
from training.run.recipes import TINY
from training.sparse import catching_up, closing
from training.sparse.layout import Layout
from training.sparse.shared import OuterSettings, flatten
from training.sparse.store import FolderStore
from training.sparse.swarm import Swarm as Rounds

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 50  # so many that a late start on a busy machine comes in time
EARLY, LATE = 4, 10  # steps


@dataclass
class Scenario(RoundsSwarm):
    """The events to play, and the observations made meanwhile."""

    def play(self) -> None:
        port = self.begin("alice", "bob")
        wait_for("the first rounds", lambda: self.last_line() >= EARLY)
        self.restart_monitor(port)
        wait_for("rounds for carol to miss", lambda: self.last_line() >= LATE)
        self.start("carol", "--name", "carol", "--no-doctor")
        self.await_start("carol")
        self.seen["step of carol's start"] = self.last_line()
        self.await_end()

    def restart_monitor(self, port: str) -> None:
        self.members["monitor"].kill()
        self.seen["lines while it was down"] = self.lines()
        wait_for(
            "alice to say that the host is gone", lambda: "does not answer" in self.said("alice")
        )
        self.start_monitor(port)

    def rounds(self) -> Rounds:
        """The run as the files in the monitor's folder say."""
        from training.model.build import build_model

        layout = Layout.of(p for p in build_model(TINY).parameters() if p.requires_grad)
        own = peer_id_of(Identity.read(self.folder / "monitor").public_key)
        store = FolderStore(self.folder / "monitor" / "exchange")
        settings = OuterSettings(learning_rate=2.0, momentum=0.0)
        return Rounds(f"test-{os.getpid()}", layout, store, {own}, settings)


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """Play the scenario once; the tests look at what came of it."""
    streaming.prepare_shapes(TINY)
    swarm = Scenario(tmp_path_factory.mktemp("local"), TOTAL_STEPS)
    try:
        swarm.play()
    finally:
        swarm.stop()
    return swarm


def board(swarm: Scenario) -> dict[str, dict[str, object]]:
    return {who["name"]: who for who in json.loads((swarm.live / "peers.json").read_text())}


def test_the_run_makes_all_its_steps_and_everybody_ends_well(swarm: Scenario) -> None:
    swarm.assert_all_ended_well()
    assert json.loads((swarm.live / "run.json").read_text())["finished"] is not None


def test_the_loss_falls(swarm: Scenario) -> None:
    swarm.assert_loss_fell()


def test_volunteers_say_that_the_host_is_gone_and_go_on(swarm: Scenario) -> None:
    down = swarm.seen["lines while it was down"]
    assert swarm.lines()[: len(down)] == down
    said = swarm.said("alice")
    assert "trying again" in said
    assert said.index("does not answer") < said.index("the run's host answers again")
    assert swarm.last_line() > down[-1]["step"]
    assert all(a["time"] <= b["time"] for a, b in pairwise(swarm.lines()))


def test_a_latecomer_takes_the_checkpoint_and_contributes(swarm: Scenario) -> None:
    carol = board(swarm)["carol"]
    assert 0 < int(str(carol["steps"])) <= TOTAL_STEPS - swarm.seen["step of carol's start"] + 1
    assert status.read(swarm.folder / "carol")["step"] == TOTAL_STEPS


def test_credit_is_what_the_signed_lists_say(swarm: Scenario) -> None:
    lines, rounds = swarm.lines(), swarm.rounds()
    kept = [n for n in range(TOTAL_STEPS) if closing.find(rounds, n) is not None]
    assert kept[-1] == TOTAL_STEPS - 1
    for number in kept:
        found = closing.find(rounds, number)
        assert found is not None
        assert lines[number]["samples"] == sum(one.samples for one in found.taken)
    assert sum(int(str(w["samples"])) for w in board(swarm).values()) == sum(
        line["samples"] for line in lines
    )
    for name in ("alice", "bob", "carol"):
        own = status.read(swarm.folder / name)["samples"]
        assert board(swarm)[name]["samples"] == own, name
        key = peer_id_of(Identity.read(swarm.folder / name).public_key)
        assert board(swarm)[name]["id"] == contributor_of(key)


def test_traffic_is_counted(swarm: Scenario) -> None:
    payload_bytes = swarm.rounds().layout.update_bytes
    for who in board(swarm).values():
        assert int(str(who["bytes_sent"])) > int(str(who["steps"])) * payload_bytes
    usual = [line["bytes_sent"] for line in swarm.lines()]
    assert sorted(usual)[len(usual) // 2] > payload_bytes


def test_the_published_weights_are_those_that_the_rounds_made(swarm: Scenario) -> None:
    state = catching_up.join(swarm.rounds())
    assert state.round == TOTAL_STEPS
    assert state.samples == sum(line["samples"] for line in swarm.lines())
    step, model = checkpoint.fetch(str(swarm.live))
    assert step == TOTAL_STEPS
    published = flatten([p for p in model.parameters() if p.requires_grad])
    assert torch.equal(published, state.weights)


def test_old_rounds_are_removed_and_pictures_drawn(swarm: Scenario) -> None:
    exchange = Path(swarm.folder / "monitor" / "exchange")
    assert len(FolderStore(exchange).names("checkpoints")) == 2
    assert closing.find(swarm.rounds(), 0) is None
    samples = read_samples(swarm.live)
    assert samples["checkpoints"][-1]["step"] == TOTAL_STEPS
    for row in samples["checkpoints"][-1]["images"]:
        assert (swarm.live / row[0]).read_bytes().startswith(b"\x89PNG")


def test_visitors_can_draw_with_the_newest_checkpoint(swarm: Scenario) -> None:
    """The page's file holds the rounds' weights, in 16 bits."""
    newest = LiveFolder(swarm.live).read_checkpoints()[-1]
    assert (newest.step, newest.drawing) == (
        TOTAL_STEPS,
        f"checkpoints/{TOTAL_STEPS:06d}/{DRAWING}",
    )
    packed = load_file(swarm.live / str(newest.drawing))
    _, model = checkpoint.fetch(str(swarm.live))
    for name, weight in model.state_dict().items():
        assert torch.equal(packed[f"model.{name}"], weight.half()), name
