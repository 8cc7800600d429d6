"""The processes of a scenario: a monitor and volunteers, mostly on loopback, as `member.py`."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from tests.training.forks import Fork
from training.rehearsal.command import free_port
from training.run import atomic, status
from training.run.live import read_samples
from training.run.recipes import TINY
from training.run.supervisor import Worker

Found = TypeVar("Found")

MOST_STARTS = 3  # of a member: more are no bad luck
PATIENCE = 240.0  # seconds: for a busy machine; each wait says what it waited for


def wait_for(what: str, condition: Callable[[], Found], seconds: float = PATIENCE) -> Found:
    """The result of the condition once it is true; fails in plain words if it never is."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.2)
    return found


@dataclass
class Swarm:
    """The processes of the scenario, and what was seen while it played.

    Attributes:
        steps: of the run's schedule; by default more than any machine makes during a test.
        exchange, store: of the run file, for a recipe with local steps.
        options: of each volunteer.
        homes: network namespaces of those who have one.
    """

    folder: Path
    steps: int = 1000
    recipe: str = "short"
    exchange: str = ""
    store: str = ""
    options: tuple[str, ...] = ()
    homes: dict[str, str] = field(default_factory=dict)
    members: dict[str, Worker] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)

    @property
    def live(self) -> Path:
        return self.folder / "live"

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    def write_run_file(self, initial_peers: list[str]) -> None:
        self.run_file.write_text(
            f'name = "test-{os.getpid()}"\nrecipe = "{self.recipe}"\n'
            f'live = "{self.live}"\ninitial_peers = {json.dumps(initial_peers)}\n'
            f"steps = {self.steps}\n"
            + (f'exchange = "{self.exchange}"\n' if self.exchange else "")
            + (f'store = "{self.store}"\n' if self.store else "")
        )

    def play(self) -> None:
        """Let everything happen that the tests look at."""

    def played(self) -> Self:
        try:
            self.play()
        finally:
            self.stop()
        return self

    def place(self, _name: str) -> list[str]:
        """Arguments for where a member listens."""
        return ["--host", "127.0.0.1"]

    def start(self, name: str, *arguments: str, **environment: str) -> Worker:
        folder = self.folder / name
        role = name if name in ("authority", "monitor") else "join"
        words = [role, str(self.run_file), "--folder", str(folder), *self.place(name), *arguments]
        folder.mkdir(exist_ok=True)
        log = folder / "terminal.txt"
        worker = Fork(words, folder, log, self.homes.get(name), environment=environment)
        worker.start()
        self.members[name] = worker
        return worker

    def await_start(self, *names: str) -> None:
        """Wait until all have started."""
        started = f"{', '.join(names)} to start"
        self.await_work(started, lambda: all(self.members[n].has_started for n in names), *names)

    def await_work(self, what: str, condition: Callable[[], object], *names: str) -> None:
        """Wait until members, by default all, have brought something about.

        Whose start hangs or who ends is started again, as its supervisor does: a monitor ends where
        a process of the averaging library hangs.
        """

        def is_done() -> bool:
            for name in names or self.members:
                worker = self.members[name]
                if worker.hangs or worker.exit_code is not None:
                    worker.kill()
                    starts = self.starts[name] = self.starts.get(name, 1) + 1
                    assert starts <= MOST_STARTS, f"{name} ends: {self.said(name)[-2000:]}"
                    worker.start()
            return bool(condition())

        wait_for(what, is_done)

    def step_of(self, name: str) -> int:
        return int(status.read(self.folder / name).get("step", 0))

    def lines(self) -> list[dict[str, Any]]:
        return atomic.AppendOnlyLines(self.live / "progress.jsonl").read()

    def last_line(self) -> int:
        lines = self.lines()
        return int(lines[-1]["step"]) if lines else 0

    def board(self) -> dict[str, dict[str, Any]]:
        """The live page's contributors by name."""
        return {line["name"]: line for line in atomic.read_json(self.live / "peers.json") or []}

    def step_drawn(self) -> int:
        """The step whose pictures, of each of the recipe's captions, are the newest."""
        samples = read_samples(self.live)
        assert samples["prompts"] == list(TINY.generation.prompts)
        for row in samples["checkpoints"][-1]["images"]:
            assert (self.live / row[0]).read_bytes().startswith(b"\x89PNG")
        return int(samples["checkpoints"][-1]["step"])

    def begin(self, *volunteers: str) -> str:
        """Start the monitor and volunteers; the monitor's port."""
        port = str(free_port())
        self.begin_at(port)
        self.join(*volunteers)
        return port

    def join(self, *names: str) -> None:
        """Start volunteers, and wait until they have started."""
        for name in names:
            self.start(name, "--name", name, *self.options)
        self.await_start(*names)

    def begin_at(self, port: str) -> None:
        """Start the monitor alone, and write its address into the run file."""
        self.write_run_file([])
        self.start_monitor(port)
        self.write_run_file(status.read(self.folder / "monitor")["addresses"])

    def start_monitor(self, port: str, *arguments: str) -> None:
        """Start the monitor, and wait until it has started."""
        self.start("monitor", "--live", str(self.live), "--port", port, *arguments)
        self.await_start("monitor")

    def kill_monitor(self) -> None:
        self.members["monitor"].kill()
        self.seen["lines while it was down"] = self.lines()

    def restart_monitor(self, port: str, steps: int) -> None:
        """Start the killed monitor again, for a few last steps."""
        samples = [line["samples"] for line in self.seen["lines while it was down"]]
        self.start_monitor(port, "--sequences", str(sum(samples) + steps * max(samples)))

    def await_end(self) -> None:
        """Wait until every process has ended, and note the exit codes."""
        for name, worker in self.members.items():
            wait_for(f"{name} to end", lambda w=worker: w.exit_code is not None)
            self.seen[f"exit code of {name}"] = worker.exit_code

    def assert_loss_fell(self) -> None:
        """See that the loss at the end is lower than at the beginning."""
        losses = [line["loss"] for line in self.lines() if line["loss"] is not None]
        assert len(losses) > len(self.lines()) / 2
        assert sum(losses[-3:]) / 3 < sum(losses[:3]) / 3 - 0.1

    def said(self, name: str) -> str:
        """A process' terminal so far."""
        return (self.folder / name / "terminal.txt").read_text()

    def stop(self) -> None:
        """End everybody politely, all at once, and then all that is left."""
        for worker in self.members.values():
            if worker.process is not None and worker.exit_code is None:
                worker.process.send_signal(signal.SIGTERM)
        for worker in self.members.values():
            worker.stop(60)
