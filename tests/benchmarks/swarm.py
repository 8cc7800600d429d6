"""Samples a second of volunteers in a swarm, against the plain loop without one."""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.benchmarks.figures import Figure, Table
from training import status
from training.supervisor import Worker

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
            Figure(f"{title}: plain / swarm", plain / together, "", _target(target)),
        ]
    return Table(f"{VOLUNTEERS} volunteers on one machine, a thread each", figures)


def _target(target: int) -> float | None:
    return 1 / TARGET_RATIO if target == LARGE else None


@dataclass
class Measurement:
    """Runs of one target batch size; `Worker`s of `volunteer.py`."""

    folder: Path
    target: int
    script: Path = field(default=Path(__file__).with_name("volunteer.py"))

    def plain(self) -> float:
        """Measure the plain loop's samples a second, in as many processes as volunteers."""
        workers = [self._start(f"plain-{i}", "plain") for i in range(VOLUNTEERS)]
        try:
            rates = [self._wait(self.folder / f"plain-{i}" / "rate") for i in range(VOLUNTEERS)]
        finally:
            for worker in workers:
                worker.kill()
        return sum(float(rate) for rate in rates) / VOLUNTEERS

    def together(self) -> float:
        """Measure a volunteer's samples a second between the third global step and the last."""
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
                self._start(f"peer-{index}", "join", str(run_file), *local)
                for index in range(VOLUNTEERS)
            )
            progress = live / "progress.jsonl"
            wanted = 2 + STEPS + 1
            self._wait_until(lambda: len(progress.read_text().splitlines()) >= wanted)
            lines = [json.loads(line) for line in progress.read_text().splitlines()]
        finally:
            for worker in workers:
                worker.kill()
        first, last = lines[2], lines[wanted - 1]
        samples = sum(line["samples"] for line in lines[3:wanted])
        seconds = datetime.fromisoformat(last["time"]) - datetime.fromisoformat(first["time"])
        return float(samples / seconds.total_seconds() / VOLUNTEERS)

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
