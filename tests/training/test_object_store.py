"""Real processes with the sparse recipe and an object store, which is down for a while."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.training.processes import RoundsSwarm, wait_for
from tests.training.sparse import object_server
from tests.training.sparse.objects import ObjectProcess
from training.data import streaming
from training.rehearsal.command import free_port
from training.run.recipes import TINY
from training.sparse.store import FolderStore

pytestmark = pytest.mark.swarm

TOTAL_STEPS = 40
EARLY, MORE = 6, 4  # steps with the store, and without it


@dataclass
class Scenario(RoundsSwarm):
    """Two volunteers; the store is ended in the middle of the run."""

    objects: ObjectProcess | None = None
    secrets: dict[str, str] = field(default_factory=lambda: dict(object_server.ENVIRONMENT))

    def play(self) -> None:
        self.objects = ObjectProcess(self.folder / "objects")
        self.objects.start()
        self.store = self.objects.address
        port = str(free_port())
        self.exchange = f"http://127.0.0.1:{port}"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.secrets.items():
                patch.setenv(name, value)
            self.begin_at(port)
        wait_for("the checkpoint to be in the store", self.objects.names)
        for name in ("alice", "bob"):
            self.start(name, "--name", name, "--no-doctor")
        self.await_start("alice", "bob")
        wait_for("rounds with the store", lambda: self.last_line() >= EARLY)
        self.seen["in the store"] = self.objects.names()
        self.seen["lines with the store"] = self.lines()
        self.objects.stop()
        for name in ("alice", "bob"):
            wait_for(
                f"{name} to do without the store",
                lambda name=name: "the run's store does not work" in self.said(name),
            )
        down = self.last_line() + 1  # of it, a file may have come from the store yet
        wait_for("rounds without the store", lambda: self.last_line() >= down + MORE)
        self.seen["lines without the store"] = self.lines()[down:]
        self.objects.start()
        self.await_end()

    def stop(self) -> None:
        super().stop()
        if self.objects is not None:
            self.objects.stop()


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    streaming.prepare_shapes(TINY)
    swarm = Scenario(tmp_path_factory.mktemp("objects"), TOTAL_STEPS)
    try:
        swarm.play()
    finally:
        swarm.stop()
    return swarm


def test_the_run_goes_on_without_its_store(swarm: Scenario) -> None:
    swarm.assert_all_ended_well()
    assert f"{swarm.store} works" in swarm.said("monitor")


def test_the_store_had_the_checkpoint_and_the_updates(swarm: Scenario) -> None:
    """Two volunteers make up to two updates a round, and most rounds have both."""
    assert len(swarm.seen["in the store"]) > 1 + EARLY


def test_the_updates_leave_the_monitor_only_where_the_store_does_not_work(
    swarm: Scenario,
) -> None:
    """Of each round, two volunteers take the list from it, and without a store the updates."""
    kept = FolderStore(swarm.folder / "monitor" / "exchange")
    updates = [kept.find(name) for name in kept.names(f"payloads/{TOTAL_STEPS - 1:09d}")]
    update = len(kept.get(str(updates[0]), 10**6))

    def usual(lines: str) -> int:
        sizes = sorted(line["bytes_received"] for line in swarm.seen[lines])
        return int(sizes[len(sizes) // 2])

    assert usual("lines with the store") + update < usual("lines without the store")


def test_no_secret_is_written_anywhere(swarm: Scenario) -> None:
    paths = [path for path in swarm.folder.rglob("*") if path.is_file()]
    assert len(paths) > 20
    for path in paths:
        content = path.read_bytes()
        for secret in (object_server.SECRET, "X-Amz-Signature"):
            assert secret.encode() not in content, path
