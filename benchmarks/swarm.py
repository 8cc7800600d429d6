"""Samples a second of volunteers in a swarm, against the plain loop without one."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.figures import Figure, Table
from training.run import status
from training.run.supervisor import Worker

VOLUNTEERS = 2  # each on a core of its own
SMALL, MEDIUM, LARGE = 128, 1024, 4096  # sequences of a global step: the rehearsal's to the paper's
STEPS = 3  # that are timed, after two that are not
PATIENCE = 900.0
TARGET_RATIO = 0.9


def run(quick: bool) -> Table:
    """Let two processes compute at once: alone with the optimizer's step, then in a swarm."""
    figures = []
    for target in (SMALL,) if quick else (SMALL, MEDIUM, LARGE):
        with tempfile.TemporaryDirectory() as folder:
            measurement = Measurement(Path(folder), target)
            plain, together = measurement.plain(), measurement.together()
        title = f"batch {target:,}"
        figures += [
            Figure(f"{title}: plain loop", plain, "samples/s each"),
            Figure(f"{title}: in the swarm", together, "samples/s each"),
            Figure(f"{title}: plain / swarm", plain / together, ""),
        ]
    if not quick:
        figures += _with_a_free_core(LARGE)
    return Table(f"{VOLUNTEERS} volunteers on one machine of two cores, a thread each", figures)


def _with_a_free_core(target: int) -> list[Figure]:
    """Let one compute whose helpers have a core to themselves, as beside a GPU.

    The other volunteer, with whom it averages, is so slow that it hardly needs the processor.
    """
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(Path(folder), target)
        plain, beside = measurement.plain(1), measurement.together("join-slowly", "peer-0")
    title = f"batch {target:,}, one volunteer and a free core"
    return [
        Figure(f"{title}: plain loop", plain, "samples/s"),
        Figure(f"{title}: in the swarm", beside, "samples/s"),
        Figure(f"{title}: plain / swarm", plain / beside, "", 1 / TARGET_RATIO),
    ]


@dataclass
class Measurement:
    """Runs of one target batch size; `Worker`s of `volunteer.py`."""

    folder: Path
    target: int
    script: Path = field(default=Path(__file__).with_name("volunteer.py"))

    def plain(self, processes: int = VOLUNTEERS) -> float:
        """Measure the plain loop's samples a second, in so many processes at once."""
        workers = [self._start(f"plain-{i}", "plain") for i in range(processes)]
        try:
            rates = [self._wait(self.folder / f"plain-{i}" / "rate") for i in range(processes)]
        finally:
            for worker in workers:
                worker.kill()
        return sum(float(rate) for rate in rates) / processes

    def together(self, other: str = "join", who: str | None = None) -> float:
        """Measure samples a second between the third global step and the last.

        Args:
            other: the command of all volunteers but the first.
            who: the volunteer whose samples count; None: the mean of all.
        """
        run_file = self.folder / "run.toml"
        run_file.write_text('name = "benchmark"\nrecipe = "benchmark"\n')
        local = ["--host", "127.0.0.1"]
        live = self.folder / "live"
        monitor = self._start("monitor", "monitor", str(run_file), "--live", str(live), *local)
        workers = [monitor]
        try:
            self._wait_until(lambda: monitor.has_started)
            addresses = json.dumps(status.read(self.folder / "monitor")["addresses"])
            with run_file.open("a") as file:
                file.write(f"initial_peers = {addresses}\n")
            workers += (
                self._start(f"peer-{i}", other if i else "join", str(run_file), *name, *local)
                for i, name in ((i, ("--name", f"peer-{i}")) for i in range(VOLUNTEERS))
            )
            books = [self._books_at(live, 3), self._books_at(live, 3 + STEPS)]
        finally:
            for worker in workers:
                worker.kill()
        (start, before), (end, after) = books
        names = [who] if who else list(after)
        samples = sum(after[name] - before[name] for name in names)
        return samples / (end - start).total_seconds() / len(names)

    def _books_at(self, live: Path, step: int) -> tuple[datetime, dict[str, int]]:
        """Times when the monitor wrote a step, and each volunteer's samples until then."""
        progress, peers = live / "progress.jsonl", live / "peers.json"
        self._wait_until(lambda: len(progress.read_text().splitlines()) >= step)
        time.sleep(0.5)  # the contributors are written after the line
        line = json.loads(progress.read_text().splitlines()[-1])
        samples = {peer["name"]: peer["samples"] for peer in json.loads(peers.read_text())}
        return datetime.fromisoformat(line["time"]), samples

    def _start(self, name: str, command: str, *arguments: str) -> Worker:
        folder = self.folder / name
        folder.mkdir()
        line = [sys.executable, str(self.script), str(self.target), command, *arguments]
        worker = Worker([*line, "--folder", str(folder)], folder, 1, folder / "terminal.txt")
        worker.start()
        return worker

    def _wait(self, path: Path) -> str:
        self._wait_until(path.exists)
        return path.read_text()

    def _wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE:.0f} s in vain")
            time.sleep(0.2)
