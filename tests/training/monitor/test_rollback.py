"""Real processes: the moderators go back to a checkpoint; a volunteer loses its own line."""

import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.forks import Fork
from tests.training.processes import PATIENCE, Swarm, wait_for
from training.data import streaming
from training.run import status, supervisor
from training.run.live import LiveFolder
from training.run.recipes import TINY

pytestmark = pytest.mark.swarm


@dataclass
class Answer:
    """Exit code of a command, and what it wrote."""

    exit_code: int
    said: str


class Scenario(Swarm):
    """A run that is sent back, and a volunteer whose network daemon is killed."""

    def play(self) -> None:
        self.begin("alice", "bob")
        wait_for("a checkpoint", LiveFolder(self.live).read_checkpoints)
        wait_for("the moderators' command", self.try_roll_back)
        self.seen["order"] = json.loads((self.folder / "monitor" / "order.json").read_text())
        step = self.seen["order"].get("step", 10**9)
        wait_for("both to go back", lambda: all(self.went_back(n) for n in ("alice", "bob")))
        wait_for("a step after it", lambda: self.last_line() > step)
        self.lose_the_line_of("bob")
        self.seen["line"] = self.lines()[-1]
        wait_for("bob to contribute again", lambda: status.read(self.folder / "bob")["samples"] > 0)

    def try_roll_back(self) -> bool:
        """Go back to the newest checkpoint; on a busy machine it may be gone meanwhile."""
        self.seen["checkpoint"] = LiveFolder(self.live).read_checkpoints()[-1].step
        self.seen["answer"] = self.roll_back(self.seen["checkpoint"])
        return bool(self.seen["answer"].exit_code == 0)

    def roll_back(self, step: int) -> Answer:
        """Give the moderators' command, as they would on the monitor's machine."""
        words = ["rollback", str(self.run_file), str(step)]
        words += ["--folder", str(self.folder / "monitor"), "--live", str(self.live)]
        folder = self.folder / "moderator"
        return Answer(*Fork(words, folder, folder / "terminal.txt").run(PATIENCE))

    def terminal(self, name: str) -> str:
        return (self.folder / name / "terminal.txt").read_text()

    def went_back(self, name: str) -> bool:
        return self.step_of(name) >= int(self.seen["order"].get("step", 10**9))

    def lose_the_line_of(self, name: str) -> None:
        """Kill a volunteer's network daemon, and start it again as its supervisor would."""
        worker = self.members[name]
        assert worker.process is not None
        for daemon in daemons_of(worker.process.pid):
            os.kill(daemon, signal.SIGKILL)
        wait_for(f"{name} to notice", lambda: worker.exit_code is not None)
        self.seen["exit code without a line"] = worker.exit_code
        worker.kill()
        worker.start()
        self.await_start(name)


def daemons_of(session: int) -> list[int]:
    """The network daemons of a process' session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
            if name == "p2pd" and int(rest.split()[3]) == session:
                found.append(int(entry.parent.name))
    assert found, "a volunteer without a network daemon"
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Play it once; the tests look at what came of it."""
    streaming.prepare_shapes(TINY)
    scenario = Scenario(tmp_path_factory.mktemp("rollback"))
    try:
        scenario.play()
    finally:
        scenario.stop()
    return scenario


def test_one_command_sends_the_whole_run_back(run: Scenario) -> None:
    answer, order = run.seen["answer"], run.seen["order"]
    assert answer.exit_code == 0, answer.said
    words = f"the run continues as step {order['step']} from the weights of {order['checkpoint']}"
    assert words in answer.said
    assert order["checkpoint"] == run.seen["checkpoint"] < order["step"]


def test_volunteers_take_the_ordered_weights_or_the_state_of_those_who_did(run: Scenario) -> None:
    words = f"the moderators returned to the weights of step {run.seen['checkpoint']}"
    assert any(words in run.terminal(name) for name in ("alice", "bob"))
    (published,) = [
        entry
        for entry in LiveFolder(run.live).read_checkpoints()
        if entry.step == run.seen["order"]["step"]
    ]
    assert published.sha256 == run.seen["order"]["sha256"]


def test_the_run_goes_on_with_higher_numbers(run: Scenario) -> None:
    steps = [line["step"] for line in run.lines()]
    assert steps == sorted(set(steps))
    assert steps[-1] > run.seen["order"]["step"]


def test_a_volunteer_whose_daemon_died_starts_again_and_contributes(run: Scenario) -> None:
    assert run.seen["exit code without a line"] == supervisor.CANNOT_CONNECT
    assert status.read(run.folder / "bob")["samples"] > 0


def test_a_step_that_is_no_checkpoint_is_bad_input(run: Scenario) -> None:
    answer = run.roll_back(7)
    assert answer.exit_code == supervisor.INPUT_ERROR
    assert answer.said.startswith("error: step")
