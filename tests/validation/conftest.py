import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from shutil import which
from typing import Any

import pytest

Measure = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def measure() -> Iterator[Measure]:
    """One row, measured in another process: the counter wants to be there before torch."""
    if not all(find_spec(name) for name in ("torch", "transformers", "bitsandbytes", "peft")):
        pytest.skip("the oracle needs torch, transformers, bitsandbytes and peft")
    if which("g++") is None:
        pytest.skip("the counting device needs a C++ compiler")
    measurers: dict[str, subprocess.Popen[str]] = {}

    def run(options: str, device: str = "counting") -> dict[str, Any]:
        if device not in measurers:
            command = [sys.executable, "-m", "tests.validation.measurer", device]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            # one thread: two measurers side by side would wait for each other's
            alone = {**os.environ, "OMP_NUM_THREADS": "1"}
            measurers[device] = subprocess.Popen(command, text=True, env=alone, **pipes)
        process = measurers[device]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(options + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())  # type: ignore[no-any-return]

    yield run
    for process in measurers.values():
        process.communicate(timeout=60)
