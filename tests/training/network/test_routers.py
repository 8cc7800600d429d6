"""Volunteers behind routers, in network namespaces with real processes."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.training.forks import Fork
from tests.training.network.homes import Router, Street, UnavailableError
from tests.training.processes import Swarm, wait_for
from training.averaging.optimizer import MOST_STEPS
from training.data import streaming
from training.model import checkpoint
from training.run import status
from training.run.recipes import TINY
from training.run.supervisor import Worker

pytestmark = pytest.mark.swarm

PORT = "31337"
STEPS = 6  # seen before something else happens
HELPED = "all 2 volunteers are behind routers: the organizers average for them"
MOST_STARTS = 3  # of a member: more are no bad luck


@dataclass
class Neighbourhood(Swarm):
    """A swarm whose members live in namespaces."""

    street: Street = field(default_factory=Street)
    homes: dict[str, str] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)

    def build(self, **routers: Router) -> None:
        for number, (name, router) in enumerate(routers.items(), start=1):
            self.homes[name] = self.street.build(number, router)
            self.seen[f"host of {name}"] = self.street.address(number)

    def start(self, name: str, *arguments: str) -> Worker:
        folder, role = self.folder / name, "monitor" if name == "monitor" else "join"
        words = [role, str(self.run_file), "--folder", str(folder)]
        folder.mkdir(exist_ok=True)
        log = folder / "terminal.txt"
        worker = Fork([*words, *arguments], folder, log, self.homes[name])
        worker.start()
        self.members[name] = worker
        return worker

    def open_monitor(self, *arguments: str) -> None:
        self.write_run_file([])
        place = ["--host", self.seen["host of monitor"], "--port", PORT]
        self.start("monitor", "--live", str(self.live), *place, *arguments)
        self.await_start("monitor")
        self.write_run_file(status.read(self.folder / "monitor")["addresses"])

    def join(self, *names: str, closed: bool = True) -> None:
        for name in names:
            place = ["--behind-firewall"] if closed else ["--host", self.seen[f"host of {name}"]]
            self.start(name, "--name", name, "--no-doctor", *place)
        self.await_start(*names)

    def await_work(self, what: str, condition: Callable[[], object]) -> None:
        """Wait until the members have brought something about.

        Whoever ends by itself is started again, as its supervisor does: a monitor ends where a
        process of the averaging library hangs.
        """

        def is_done() -> bool:
            for name, worker in self.members.items():
                if worker.exit_code is not None:
                    worker.kill()
                    starts = self.starts[name] = self.starts.get(name, 1) + 1
                    assert starts <= MOST_STARTS, f"{name} ends: {self.terminal(name)[-2000:]}"
                    worker.start()
            return bool(condition())

        wait_for(what, is_done)

    def board(self) -> dict[str, dict[str, Any]]:
        path = self.live / "peers.json"
        return {who["name"]: who for who in json.loads(path.read_text())} if path.exists() else {}

    def await_shared_steps(self, *names: str) -> None:
        """Wait until these volunteers and who averages for them made steps, and it is booked."""
        met = f"averaged gradients with {len(names) + 1} peers"

        def have_made_them() -> bool:
            board, least = self.board(), STEPS // 2
            return self.last_line() >= STEPS and all(
                board.get(name, {}).get("steps", 0) >= least
                and (self.folder / name / "log.txt").read_text().count(met) >= least
                for name in names
            )

        self.await_work(f"steps of {' and '.join(names)} together", have_made_them)

    def own_count(self, name: str) -> tuple[int, int]:
        """The step a volunteer is at, and the samples it thinks it has contributed."""
        told = status.read(self.folder / name)
        return int(told["step"]), int(told["samples"])

    def notice(self) -> str:
        return str(json.loads((self.live / "run.json").read_text())["notice"])

    def terminal(self, name: str) -> str:
        return (self.folder / name / "terminal.txt").read_text()


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    streaming.prepare_shapes(TINY)
    try:
        with Street() as street:
            yield street
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def closed(street: Street, tmp_path_factory: pytest.TempPathFactory) -> Neighbourhood:
    """Two behind routers begin, a third comes late, then one whom others can call."""
    swarm = Neighbourhood(tmp_path_factory.mktemp("closed"), street=street)
    swarm.build(
        monitor=Router.NONE,
        alice=Router.CLOSED,
        bob=Router.SYMMETRIC,
        carol=Router.CLOSED,
        dora=Router.NONE,
    )
    try:
        swarm.open_monitor()
        swarm.join("alice", "bob")
        swarm.await_shared_steps("alice", "bob")
        swarm.await_work("the monitor to say that it helps", lambda: swarm.notice() == HELPED)
        swarm.seen["alone"] = swarm.board()
        swarm.seen["step before carol"] = swarm.last_line()
        swarm.join("carol")
        swarm.await_work(
            "carol's first samples", lambda: swarm.board().get("carol", {}).get("samples")
        )
        swarm.await_work("a checkpoint", lambda: (swarm.live / "checkpoints.json").exists())
        swarm.join("dora", closed=False)
        swarm.await_work(
            "dora's first samples", lambda: swarm.board().get("dora", {}).get("samples")
        )
        swarm.seen["last notice"] = swarm.notice()
    finally:
        swarm.stop()
    return swarm


def test_volunteers_who_cannot_be_called_make_steps_together(closed: Neighbourhood) -> None:
    board = closed.seen["alone"]
    for name in ("alice", "bob"):
        assert board[name]["steps"] >= STEPS // 2, board
        assert board[name]["samples"] > 0


def test_they_are_credited_for_no_more_than_they_can_have_computed(closed: Neighbourhood) -> None:
    largest = MOST_STEPS * TINY.swarm.target_batch_size
    for line in closed.lines():
        assert line["samples"] <= largest * (line["training"] + line["syncing"]), line


def test_the_monitor_says_that_it_averages_for_them(closed: Neighbourhood) -> None:
    assert HELPED in closed.terminal("monitor")
    assert closed.seen["alone"]["the monitor"]["samples"] == 0
    assert closed.seen["alone"]["the monitor"]["state"] == "helping"


def test_a_newcomer_behind_a_router_gets_the_state_and_contributes(closed: Neighbourhood) -> None:
    assert closed.board()["carol"]["samples"] > 0
    assert closed.own_count("carol")[0] > closed.seen["step before carol"]


def test_the_monitor_publishes_a_checkpoint_of_what_nobody_can_be_called_for(
    closed: Neighbourhood,
) -> None:
    step, model = checkpoint.fetch(str(closed.live))
    assert step > 0
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_one_who_can_be_called_trains_with_those_who_cannot(closed: Neighbourhood) -> None:
    assert closed.board()["dora"]["samples"] > 0
    assert "behind routers" in closed.seen["last notice"]
