"""Volunteers behind routers, in network namespaces with real processes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.training.network.homes import Router, Street, UnavailableError
from tests.training.processes import Swarm
from training.averaging.optimizer import MOST_STEPS
from training.model import checkpoint
from training.run.recipes import TINY

pytestmark = pytest.mark.swarm

PORT = "31337"
STEPS = 6  # seen before something else happens
HELPED = "all 2 volunteers are behind routers: the organizers average for them"


@dataclass
class Neighbourhood(Swarm):
    """A swarm whose members live in namespaces."""

    options: tuple[str, ...] = ("--no-doctor",)
    street: Street = field(default_factory=Street)
    places: dict[str, list[str]] = field(default_factory=dict)

    def build(self, **routers: Router) -> None:
        for number, (name, router) in enumerate(routers.items(), start=1):
            self.homes[name] = self.street.build(number, router)
            is_open, host = router is Router.NONE, self.street.address(number)
            self.places[name] = ["--host", host] if is_open else ["--behind-firewall"]

    def place(self, name: str) -> list[str]:
        return self.places[name]

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

    def notice(self) -> str:
        return str(json.loads((self.live / "run.json").read_text())["notice"])

    def play(self) -> None:
        self.begin_at(PORT)
        self.join("alice", "bob")
        self.await_shared_steps("alice", "bob")
        self.await_work("the monitor to say that it helps", lambda: self.notice() == HELPED)
        self.seen["alone"] = self.board()
        self.seen["step before carol"] = self.last_line()
        self.join("carol")
        self.await_first_samples("carol")
        self.await_work("a checkpoint", lambda: (self.live / "checkpoints.json").exists())
        self.join("dora")
        self.await_first_samples("dora")
        self.seen["last notice"] = self.notice()

    def await_first_samples(self, name: str) -> None:
        what = f"{name}'s first samples"
        self.await_work(what, lambda: self.board().get(name, {}).get("samples"))


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
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
    return swarm.played()


def test_they_are_credited_for_no_more_than_they_can_have_computed(closed: Neighbourhood) -> None:
    largest = MOST_STEPS * TINY.swarm.target_batch_size
    for line in closed.lines():
        assert line["samples"] <= largest * (line["training"] + line["syncing"]), line


def test_the_monitor_says_that_it_averages_for_them(closed: Neighbourhood) -> None:
    assert HELPED in closed.said("monitor")
    helper = closed.seen["alone"]["the monitor"]
    assert (helper["samples"], helper["state"]) == (0, "helping")


def test_a_newcomer_behind_a_router_gets_the_state(closed: Neighbourhood) -> None:
    """That it and the others contribute is waited for, above."""
    assert closed.step_of("carol") > closed.seen["step before carol"]


def test_the_monitor_publishes_a_checkpoint_of_their_weights(closed: Neighbourhood) -> None:
    step, model = checkpoint.fetch(str(closed.live))
    assert step > 0
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_one_who_can_be_called_trains_with_those_who_cannot(closed: Neighbourhood) -> None:
    assert "behind routers" in closed.seen["last notice"]
