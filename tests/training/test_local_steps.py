"""Real processes with the sparse recipe: a store that is down, a latecomer, a death, a new host."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_high

import pytest
import torch
from safetensors.torch import load_file

from tests.training.processes import Swarm, wait_for
from tests.training.sparse import object_server
from tests.training.sparse.object_server import ObjectServer
from training.access.grants import peer_id_of
from training.model import checkpoint
from training.model.build import build_model
from training.network.connection import Identity
from training.records.owners import contributor_of
from training.run import status
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.sparse import catching_up, closing
from training.sparse.closing import Swarm as Rounds
from training.sparse.layout import Layout
from training.sparse.shared import flatten
from training.sparse.store import FolderStore

pytestmark = pytest.mark.swarm

SOME = 5  # rounds that an event lasts
STAYING = ("alice", "carol")


@dataclass
class Scenario(Swarm):
    """The events to play, one after the other, and the observations made meanwhile."""

    recipe: str = "tiny-sparse"
    options: tuple[str, ...] = ("--no-doctor",)

    def __post_init__(self) -> None:
        self.objects = ObjectServer(self.folder / "objects")

    def play(self) -> None:
        self.objects.start()
        self.store = self.objects.address
        port = self.begin("alice", "bob")
        self.lose_the_store()
        self.take_in("carol")
        self.members.pop("bob").kill()
        self.await_rounds("after bob's death")
        self.objects.start()
        self.kill_monitor()
        wait_for(
            "alice to say that the host is gone", lambda: "does not answer" in self.said("alice")
        )
        self.restart_monitor(port, SOME)
        self.await_end()
        self.steps = self.last_line()

    def start_monitor(self, port: str, *arguments: str) -> None:
        """Start the monitor, which alone has the store's keys."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in object_server.ENVIRONMENT.items():
                patch.setenv(name, value)
            super().start_monitor(port, *arguments)

    def begin_at(self, port: str) -> None:
        self.exchange = f"http://127.0.0.1:{port}"  # the monitor is the host of the rounds
        super().begin_at(port)
        wait_for("the checkpoint to be in the store", self.objects.names)

    def await_rounds(self, what: str, count: int = SOME) -> None:
        last = self.last_line() + count
        wait_for(f"{count} rounds {what}", lambda: self.last_line() >= last)

    def lose_the_store(self) -> None:
        self.await_rounds("with the store")
        self.seen["in the store"] = self.objects.names()
        self.seen["lines with the store"] = self.lines()
        self.objects.stop()
        wait_for(
            "the monitor to do without the store",
            lambda: "the store does not take a file" in self.said("monitor"),
        )
        down = self.last_line() + 1  # of it, a file may have come from the store yet
        self.await_rounds("without the store", SOME + 1)
        self.seen["lines without the store"] = self.lines()[down:]

    def take_in(self, name: str) -> None:
        self.seen["step of the late start"] = self.last_line()
        self.join(name)
        wait_for(f"a round of {name}", lambda: status.read(self.folder / name)["samples"])

    def rounds(self) -> Rounds:
        """The run as the files in the monitor's folder say."""
        layout = Layout.of(p for p in build_model(TINY).parameters() if p.requires_grad)
        own = peer_id_of(Identity.read(self.folder / "monitor").public_key)
        store = FolderStore(self.folder / "monitor" / "exchange")
        return Rounds(f"test-{os.getpid()}", layout, store, {own}, 2.0)

    def stop(self) -> None:
        super().stop()
        self.objects.stop()


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """Play the scenario once; the tests look at what came of it."""
    return Scenario(tmp_path_factory.mktemp("local")).played()


def test_the_loss_falls_round_after_round_and_everybody_ends_well(swarm: Scenario) -> None:
    for name in swarm.members:
        assert swarm.seen[f"exit code of {name}"] == 0, swarm.said(name)
    assert [line["step"] for line in swarm.lines()] == list(range(1, swarm.steps + 1))
    swarm.assert_loss_fell()
    assert json.loads((swarm.live / "run.json").read_text())["finished"] is not None


def test_volunteers_say_that_the_host_is_gone_and_go_on(swarm: Scenario) -> None:
    down = swarm.seen["lines while it was down"]
    assert swarm.lines()[: len(down)] == down
    said = swarm.said("alice")
    assert "trying again" in said
    assert said.index("does not answer") < said.index("the run's host answers again")
    assert swarm.last_line() > down[-1]["step"]
    assert all(a["time"] <= b["time"] for a, b in pairwise(swarm.lines()))


def test_a_latecomer_takes_the_checkpoint_and_contributes(swarm: Scenario) -> None:
    carol = swarm.board()["carol"]
    assert 0 < carol["steps"] <= swarm.steps - swarm.seen["step of the late start"] + 1
    assert status.read(swarm.folder / "carol")["step"] == swarm.steps


def test_credit_is_what_the_signed_lists_say(swarm: Scenario) -> None:
    lines, rounds = swarm.lines(), swarm.rounds()
    kept = [n for n in range(swarm.steps) if closing.find(rounds, n) is not None]
    assert kept[-1] == swarm.steps - 1
    for number in kept:
        found = closing.find(rounds, number)
        assert lines[number]["samples"] == sum(one.samples for one in found.taken)
    assert sum(line["samples"] for line in swarm.board().values()) == sum(
        line["samples"] for line in lines
    )
    for name in STAYING:
        own = status.read(swarm.folder / name)["samples"]
        assert swarm.board()[name]["samples"] == own, name
        key = peer_id_of(Identity.read(swarm.folder / name).public_key)
        assert swarm.board()[name]["id"] == contributor_of(key)


def test_traffic_is_counted_and_goes_through_the_store_where_that_works(swarm: Scenario) -> None:
    """Two volunteers make up to two updates a round, and most rounds have both.

    Of each round, they take the list from the monitor, and without a store the updates, too.
    """

    def usual(kind: str, number: str) -> float:
        return median_high(line[number] for line in swarm.seen[f"lines {kind} the store"])

    payload_bytes = swarm.rounds().layout.update_bytes
    for line in swarm.board().values():
        assert line["bytes_sent"] > line["steps"] * payload_bytes
    assert usual("without", "bytes_sent") > payload_bytes
    assert f"{swarm.store} works" in swarm.said("monitor")
    assert len(swarm.seen["in the store"]) > 1 + SOME
    kept = swarm.rounds().store
    updates = [kept.find(name) for name in kept.names(f"payloads/{swarm.steps - 1:09d}")]
    update = kept.get(str(updates[0]), 10**6)
    assert usual("with", "bytes_received") + len(update) < usual("without", "bytes_received")


def test_no_secret_is_written_anywhere(swarm: Scenario) -> None:
    paths = [path for path in swarm.folder.rglob("*") if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        content = path.read_bytes()
        for secret in (object_server.SECRET, "X-Amz-Signature"):
            assert secret.encode() not in content, path


def test_the_published_weights_are_those_that_the_rounds_made(swarm: Scenario) -> None:
    """Those in the page's file, with which visitors draw, are the same in 16 bits."""
    state = catching_up.join(swarm.rounds())
    assert state.round == swarm.steps
    assert state.samples == sum(line["samples"] for line in swarm.lines())
    step, model = checkpoint.fetch(str(swarm.live))
    assert step == swarm.steps
    published = flatten([p for p in model.parameters() if p.requires_grad])
    assert torch.equal(published, state.weights)
    packed = load_file(swarm.live / str(LiveFolder(swarm.live).read_checkpoints()[-1].drawing))
    for name, weight in model.state_dict().items():
        assert torch.equal(packed[f"model.{name}"], weight.half()), name


def test_old_rounds_are_removed_and_pictures_drawn(swarm: Scenario) -> None:
    assert len(swarm.rounds().store.names("checkpoints")) == 2
    assert closing.find(swarm.rounds(), 0) is None
    assert swarm.step_drawn() == swarm.steps
