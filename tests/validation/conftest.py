import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest

Measure = Callable[..., dict[str, Any]]
Abreast = Callable[..., None]
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


@pytest.fixture(scope="session")
def measure(libraries: None) -> Iterator[Measure]:
    """One row, measured in another process: the counter wants to be there before torch."""
    measurers: dict[str, subprocess.Popen[str]] = {}

    def run(options: str, device: str = "counting") -> dict[str, Any]:
        if device not in measurers:
            command = [sys.executable, "-m", "tests.validation.measurer", device]
            measurers[device] = subprocess.Popen(command, env=ALONE, **PIPES)
        return _answer(measurers[device], options)  # type: ignore[no-any-return]

    yield run
    _end(measurers.values())


@pytest.fixture(scope="session")
def abreast(libraries: None) -> Iterator[Abreast]:
    """Several processes at once, with a step or a program for all; see `tests.validation.gloo`."""
    forking: dict[str, subprocess.Popen[str]] = {}

    def run(folder: Path, processes: int, **asked: object) -> None:
        device = "cpu" if "program" in asked else "counting"
        if device not in forking:
            command = [sys.executable, "-m", "tests.validation.gloo", device]
            forking[device] = subprocess.Popen(command, env=ALONE, **PIPES)
        question = {"folder": str(folder), "processes": processes, **asked}
        exits = _answer(forking[device], json.dumps(question))
        printed = [path.read_text()[-3000:] for path in sorted(folder.glob("rank-*.txt"))]
        assert exits == [0] * processes, "\n".join(printed)

    yield run
    _end(forking.values())


def _answer(process: "subprocess.Popen[str]", question: str) -> Any:
    """Answer of a process to a line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _end(processes: "Iterable[subprocess.Popen[str]]") -> None:
    """End processes that have nothing to say any more: by themselves they free all they loaded."""
    for process in processes:
        process.kill()
        process.communicate()
