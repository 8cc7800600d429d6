import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import IO, Any

import pytest

from tests.validation.gloo import Abreast
from tests.validation.measurer import Measure

# one thread: several processes side by side would wait for each other's
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


@pytest.fixture(scope="session")
def libraries() -> None:
    """Libraries and a compiler that only the oracle needs."""
    if not all(find_spec(name) for name in ("torch", "transformers", "bitsandbytes", "peft")):
        pytest.skip("the oracle needs torch, transformers, bitsandbytes and peft")
    if which("g++") is None:
        pytest.skip("the counting device needs a C++ compiler")


class Server:
    """A process of `tests.validation.gloo`, and the measurer that it forks.

    Both have what takes seconds to import; the measurer needs the counter before PyTorch.
    """

    def __init__(self) -> None:
        asked, tells = os.pipe()
        hears, answered = os.pipe()
        command = [sys.executable, "-m", "tests.validation.gloo", str(asked), str(answered)]
        self.process = subprocess.Popen(command, env=ALONE, pass_fds=(asked, answered), **PIPES)
        for end in (asked, answered):
            os.close(end)
        self.measurer = os.fdopen(tells, "w"), os.fdopen(hears)

    def measured(self, question: str) -> Any:
        return _answer(*self.measurer, question)

    def exits(self, question: str) -> Any:
        """Exit statuses of forked processes, for what a line asks of them."""
        return _answer(self.process.stdin, self.process.stdout, question)

    def end(self) -> None:
        """End both, which have nothing to say any more: else they free all they loaded."""
        for end in self.measurer:
            end.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="session")
def server(libraries: None) -> Iterator[Server]:
    started = Server()
    yield started
    started.end()


@pytest.fixture(scope="session")
def measure(server: Server) -> Measure:
    """One row, measured in another process."""
    return lambda options, device="counting": server.measured(f"{device} {options}")


@pytest.fixture(scope="session")
def abreast(server: Server) -> Abreast:
    """Several processes at once, with a step or a program for all; see `tests.validation.gloo`."""

    def run(folder: Path, processes: int, **asked: object) -> None:
        question = {"folder": str(folder), "processes": processes, **asked}
        exits = server.exits(json.dumps(question))
        printed = [path.read_text()[-3000:] for path in sorted(folder.glob("rank-*.txt"))]
        assert exits == [0] * processes, "\n".join(printed)

    return run


def _answer(tells: IO[str], hears: IO[str], question: str) -> Any:
    tells.write(question + "\n")
    tells.flush()
    return json.loads(hears.readline())
