"""Real processes on loopback: a death, a latecomer that leaves, a return, a restart."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from tests.training.member import SHORT
from tests.training.processes import Swarm, wait_for
from training.__main__ import main
from training.averaging.optimizer import ordered_parameters
from training.averaging.state import TrainingState
from training.model import checkpoint
from training.model.build import build_model
from training.run import status, supervisor
from training.run.live import LiveFolder
from training.run.recipes import RECIPES, TINY
from training.volunteer import backup

pytestmark = pytest.mark.swarm

LATE_STEPS = 4
LAST_STEPS = 3  # of a restarted monitor


@dataclass
class Scenario(Swarm):
    """The events to play, one after the other, and the observations made meanwhile."""

    def play(self) -> None:
        port = self.begin("alice", "bob", "carol")
        wait_for("bob to train with the others", lambda: self.samples_of("bob"))
        self.seen["libraries of alice"] = self.libraries("alice")
        self.kill_in_mid_step("bob")
        wait_for("steps for dave to miss", lambda: self.step_of("alice") >= LATE_STEPS)
        self.join("dave")
        wait_for("dave to train", lambda: self.samples_of("dave"))
        self.leave_after_a_step("dave")
        self.send_everybody_back()
        self.seen["states"] = wait_for("alice and carol after the same step", self.same_step)
        self.kill_monitor_in_mid_write()
        self.restart_monitor(port, LAST_STEPS)
        monitor = self.members["monitor"]
        wait_for("the monitor to end the run", lambda: monitor.exit_code is not None)

    def samples_of(self, name: str) -> int:
        return int(status.read(self.folder / name).get("samples", 0))

    def libraries(self, name: str) -> str:
        """The files that a process has loaded."""
        return Path("/proc", str(self.members[name].process.pid), "maps").read_text()

    def kill_in_mid_step(self, name: str) -> None:
        busy = ("waiting", "averaging")
        with contextlib.suppress(pytest.fail.Exception):  # a step may be too short to be met
            wait_for("mid-step", lambda: status.read(self.folder / name)["stage"] in busy, 15)
        self.seen["step of the death"] = self.step_of(name)
        self.members.pop(name).kill()

    def leave_after_a_step(self, name: str) -> None:
        before = self.samples_of(name)
        wait_for("its next step", lambda: self.samples_of(name) > before)
        self.members.pop(name).stop()
        own = self.seen["samples of who left"] = self.samples_of(name)
        wait_for(f"{name} to be gone", lambda: self.board()[name]["state"] == "left")
        wait_for("its last step to be credited", lambda: self.accounted(name) == own)

    def accounted(self, name: str) -> int:
        """Samples on the leaderboard, with those that the log disputes."""
        log = (self.folder / "monitor" / "log.txt").read_text()
        claims = re.findall(rf"{name} claims (\d+) samples in step \d+, the others saw (\d+)", log)
        unseen = re.findall(rf"{name} claims (\d+) samples in \d+ steps that", log)
        given = re.findall(rf"{name} is credited late with (\d+) samples", log)
        disputed = sum(int(claimed) - int(seen) for claimed, seen in claims)
        disputed += sum(map(int, unseen)) - sum(map(int, given))
        return int(self.board()[name]["samples"]) + disputed

    def send_everybody_back(self) -> None:
        wait_for("a checkpoint", LiveFolder(self.live).read_checkpoints)
        wait_for("the moderators' command", self.try_roll_back)
        self.seen["order"] = json.loads((self.folder / "monitor" / "order.json").read_text())
        step = self.seen["order"]["step"]
        for name in ("alice", "carol"):
            wait_for(f"{name} to go back", lambda name=name: self.step_of(name) >= step)
        wait_for("a step after it", lambda: self.last_line() > step)

    def try_roll_back(self) -> bool:
        """Go back to the newest checkpoint; on a busy machine it may be gone meanwhile."""
        self.seen["checkpoint"] = LiveFolder(self.live).read_checkpoints()[-1].step
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exit_code = self.roll_back(self.seen["checkpoint"])
        self.seen["answer"] = said.getvalue()
        return exit_code == 0

    def roll_back(self, step: int) -> int:
        """Give the moderators' command, as they would on the monitor's machine."""
        words = ["rollback", str(self.run_file), str(step)]
        words += ["--folder", str(self.folder / "monitor"), "--live", str(self.live)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(RECIPES, SHORT.name, SHORT)
            return main(words)

    def same_step(self) -> list[TrainingState]:
        """The backups of alice and carol once both are of the same step after the return."""
        shapes = ordered_parameters(build_model(TINY), TINY)
        found = [backup.load(self.folder / n / "backup.pt", shapes) for n in ("alice", "carol")]
        states = [one.state for one in found if one is not None]
        steps = {state.epoch for state in states}
        are_the_same = len(states) == 2 and len(steps) == 1
        return states if are_the_same and min(steps) > self.seen["order"]["step"] else []

    def kill_monitor_in_mid_write(self) -> None:
        self.seen["identity"] = (self.folder / "monitor" / "identity.key").read_bytes()
        self.kill_monitor()
        with (self.live / "progress.jsonl").open("a") as file:
            file.write('{"step":99,"time":"20')  # as if the power had failed in a write


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """Play the scenario once; the tests look at what came of it."""
    return Scenario(tmp_path_factory.mktemp("swarm")).played()


def test_the_loss_falls(swarm: Scenario) -> None:
    swarm.assert_loss_fell()


def test_the_run_goes_on_to_its_end_after_a_volunteer_is_killed_in_mid_step(
    swarm: Scenario,
) -> None:
    assert swarm.seen["step of the death"] < swarm.last_line() - 5
    assert swarm.lines()[-1]["left"] >= 1
    assert swarm.members["monitor"].exit_code == 0
    assert json.loads((swarm.live / "run.json").read_text())["finished"] is not None


def test_the_late_volunteer_catches_up_and_contributes(swarm: Scenario) -> None:
    dave = swarm.board()["dave"]
    assert dave["samples"] > 0.8 * swarm.seen["samples of who left"]
    assert 0 < dave["steps"] <= swarm.last_line() - LATE_STEPS
    assert set(swarm.board()) == {"alice", "bob", "carol", "dave"}


def test_a_volunteer_reads_its_data_without_pandas(swarm: Scenario) -> None:
    assert "/pyarrow/" in swarm.seen["libraries of alice"]
    assert "/pandas/" not in swarm.seen["libraries of alice"]


def test_one_command_sends_the_whole_run_back(swarm: Scenario) -> None:
    """Volunteers load the checkpoint that was ordered, or the state of a peer that has."""
    order, back_to = swarm.seen["order"], swarm.seen["checkpoint"]
    words = f"the run continues as step {order['step']} from the weights of {back_to}"
    assert words in swarm.seen["answer"]
    assert order["checkpoint"] == back_to < order["step"]
    words = f"the moderators returned to the weights of step {back_to}"
    assert any(words in swarm.said(name) for name in ("alice", "carol"))
    published = {entry.step: entry.sha256 for entry in LiveFolder(swarm.live).read_checkpoints()}
    assert published[order["step"]] == order["sha256"]


def test_a_step_must_be_a_checkpoint(swarm: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    assert swarm.roll_back(7) == supervisor.INPUT_ERROR
    assert "error: step" in capsys.readouterr().err


def test_a_killed_monitor_leaves_readable_data_and_continues_it(swarm: Scenario) -> None:
    down, lines = swarm.seen["lines while it was down"], swarm.lines()
    assert lines[: len(down)] == down
    steps = [line["step"] for line in lines]
    assert all(later > earlier for earlier, later in pairwise(steps))
    since = steps[len(down) :]
    assert since == list(range(since[0], steps[-1] + 1)), "no step is left out"
    identity = (swarm.folder / "monitor" / "identity.key").read_bytes()
    assert identity == swarm.seen["identity"]


def test_all_volunteers_have_the_same_parameters(swarm: Scenario) -> None:
    shapes = ordered_parameters(build_model(TINY), TINY)
    own, other = (
        torch.cat([tensor.flatten() for tensor in state.tensors[: len(shapes)]])
        for state in swarm.seen["states"]
    )
    start = torch.cat([parameter.detach().flatten() for parameter in shapes])
    # gradients travel in 8 bits, so that each peer reads the average a little differently
    assert (own - other).norm() < 0.1 * (own - start).norm()


def test_the_way_to_the_first_gradient_is_measured(swarm: Scenario) -> None:
    for name in ("alice", "carol", "dave"):  # bob died early
        reached = swarm.board()[name]["milestones"]
        steps = [reached[step] for step in ("connect", "state", "first_batch", "first_average")]
        assert steps == sorted(steps), name
        assert steps[-1] > 0


def test_the_published_checkpoint_is_what_its_sum_says_and_is_drawn_from(swarm: Scenario) -> None:
    step, model = checkpoint.fetch(str(swarm.live))
    assert step >= swarm.last_line() - 1
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert swarm.step_drawn() == step


def test_nothing_is_left_running(swarm: Scenario) -> None:
    sessions = {worker.process.pid for worker in swarm.members.values() if worker.process}
    running = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = entry.read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                running.add(int(session))
    assert not sessions & running
