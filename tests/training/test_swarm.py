"""Real processes on loopback: volunteers, a monitor, a death, a late joiner, a restart."""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from tests.training.processes import Swarm, wait_for
from training.data import streaming
from training.model import checkpoint
from training.run import status
from training.run.live import read_samples
from training.run.recipes import TINY
from training.volunteer import backup

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 50  # so many that a late start on a busy machine comes in time
LATE_STEPS = 6


@dataclass
class Scenario(Swarm):
    """The events to play, and the observations made meanwhile."""

    def play(self) -> None:
        port = self.begin("alice", "bob", "carol")
        wait_for(
            "bob to train with the others", lambda: status.read(self.folder / "bob")["samples"]
        )
        self.kill_in_mid_step("bob")
        wait_for("steps for dave to miss", lambda: self.step_of("alice") >= LATE_STEPS)
        self.start("dave", "--name", "dave")
        self.await_start("dave")
        self.restart_monitor_in_mid_write(port)
        monitor = self.members["monitor"]
        wait_for("the monitor to end the run", lambda: monitor.exit_code is not None)
        self.seen["exit code of the monitor"] = monitor.exit_code

    def kill_in_mid_step(self, name: str) -> None:
        busy = ("waiting", "averaging")
        with contextlib.suppress(pytest.fail.Exception):  # a step may be too short to be met
            wait_for("mid-step", lambda: status.read(self.folder / name)["stage"] in busy, 15)
        self.seen["step of the death"] = self.step_of(name)
        self.members.pop(name).kill()

    def restart_monitor_in_mid_write(self, port: str) -> None:
        wait_for("two lines of progress", lambda: len(self.lines()) >= 2)
        self.seen["identity"] = (self.folder / "monitor" / "identity.key").read_bytes()
        self.members["monitor"].kill()
        self.seen["step of the restart"] = self.last_line()
        with (self.live / "progress.jsonl").open("a") as file:
            file.write('{"step":99,"time":"20')  # as if the power had failed in a write
        self.seen["lines while it was down"] = self.lines()
        self.start("monitor", "--live", str(self.live), "--port", port)
        self.await_start("monitor")


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """Play the scenario once; the tests look at what came of it."""
    streaming.prepare_shapes(TINY)
    swarm = Scenario(tmp_path_factory.mktemp("swarm"), TOTAL_STEPS)
    try:
        swarm.play()
    finally:
        swarm.stop()
    return swarm


def test_the_loss_falls(swarm: Scenario) -> None:
    losses = [line["loss"] for line in swarm.lines() if line["loss"] is not None]
    first, last = sum(losses[:3]) / 3, sum(losses[-3:]) / 3
    assert last < first - 0.1


def test_the_run_goes_on_after_a_volunteer_is_killed_in_mid_step(swarm: Scenario) -> None:
    assert swarm.seen["step of the death"] < swarm.last_line() - 5
    assert swarm.lines()[-1]["left"] >= 1


def test_the_run_makes_all_its_steps(swarm: Scenario) -> None:
    assert swarm.seen["exit code of the monitor"] == 0
    assert swarm.last_line() == TOTAL_STEPS
    assert json.loads((swarm.live / "run.json").read_text())["finished"] is not None


def test_the_late_volunteer_catches_up_and_contributes(swarm: Scenario) -> None:
    told = status.read(swarm.folder / "dave")
    assert told["step"] == TOTAL_STEPS
    assert told["samples"] > 0
    contributors = {who["name"]: who for who in json.loads((swarm.live / "peers.json").read_text())}
    assert contributors["dave"]["steps"] <= TOTAL_STEPS - LATE_STEPS
    assert set(contributors) == {"alice", "bob", "carol", "dave"}


def test_a_killed_monitor_leaves_readable_data_and_continues_it(swarm: Scenario) -> None:
    down = swarm.seen["lines while it was down"]
    assert down[-1]["step"] == swarm.seen["step of the restart"]
    lines = swarm.lines()
    assert lines[: len(down)] == down
    assert all(later["step"] > earlier["step"] for earlier, later in pairwise(lines))
    since = [line["step"] for line in lines[len(down) :]]
    assert since == list(range(down[-1]["step"] + 1, TOTAL_STEPS + 1)), "no step is lost"
    identity = (swarm.folder / "monitor" / "identity.key").read_bytes()
    assert identity == swarm.seen["identity"]


def test_all_volunteers_end_with_the_same_parameters(swarm: Scenario) -> None:
    from training.averaging.optimizer import ordered_parameters
    from training.model.build import build_model

    shapes = ordered_parameters(build_model(TINY), TINY)
    ends = [
        backup.load(swarm.folder / name / "backup.pt", shapes)
        for name in ("alice", "carol", "dave")
    ]
    states = [end.state for end in ends if end is not None]
    assert [state.epoch for state in states] == [TOTAL_STEPS] * 3
    flat = [torch.cat([t.flatten() for t in state.tensors[: len(shapes)]]) for state in states]
    start = torch.cat([p.detach().flatten() for p in shapes])
    way = (flat[0] - start).norm()
    for other in flat[1:]:
        # gradients travel in 8 bits, so that each peer reads the average a little differently
        assert (flat[0] - other).norm() < 0.1 * way


def test_the_leaderboard_and_the_terminals_differ_by_what_the_log_disputes(
    swarm: Scenario,
) -> None:
    log = (swarm.folder / "monitor" / "log.txt").read_text()
    disputed: Counter[str] = Counter()
    for who, claimed, seen in re.findall(
        r"(\w+) claims (\d+) samples in step \d+, the others saw (\d+)", log
    ):
        disputed[who] += int(claimed) - int(seen)
    for who, claimed in re.findall(r"(\w+) claims (\d+) samples in \d+ steps that", log):
        disputed[who] += int(claimed)
    for who, given in re.findall(r"(\w+) is credited late with (\d+) samples", log):
        disputed[who] -= int(given)
    board = {who["name"]: who for who in json.loads((swarm.live / "peers.json").read_text())}
    for name in ("alice", "carol", "dave"):
        own = status.read(swarm.folder / name)["samples"]
        assert board[name]["samples"] + disputed[name] == own, name
        assert board[name]["samples"] > 0.8 * own


def test_the_way_to_the_first_gradient_is_measured(swarm: Scenario) -> None:
    for who in json.loads((swarm.live / "peers.json").read_text()):
        if who["name"] == "bob":  # died early
            continue
        reached = who["milestones"]
        steps = [reached[step] for step in ("connect", "state", "first_batch", "first_average")]
        assert steps == sorted(steps), who["name"]
        assert steps[-1] > 0


def test_the_published_checkpoint_is_what_its_sum_says_and_is_drawn_from(swarm: Scenario) -> None:
    step, model = checkpoint.fetch(str(swarm.live))
    assert step >= TOTAL_STEPS - 1
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    samples = read_samples(swarm.live)
    assert samples["prompts"] == list(TINY.generation.prompts)
    newest = samples["checkpoints"][-1]
    assert newest["step"] == step
    for row in newest["images"]:
        assert (swarm.live / row[0]).read_bytes().startswith(b"\x89PNG")


def test_nothing_is_left_running(swarm: Scenario) -> None:
    sessions = {worker.process.pid for worker in swarm.members.values() if worker.process}
    running = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = entry.read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                running.add(int(session))
    assert not sessions & running
