import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

Measure = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def measure() -> Measure:
    """One row, measured in a process of its own: the fake GPU wants to be there before torch."""
    if not all(find_spec(name) for name in ("torch", "transformers", "bitsandbytes")):
        pytest.skip("the oracle needs torch, transformers and bitsandbytes")

    def run(options: str, device: str = "fake") -> dict[str, Any]:
        command = [sys.executable, "-m", "validation", "measure", *options.split()]
        command += ["--device", device, "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
        if "needs a C++ compiler" in done.stderr:
            pytest.skip("the fake GPU needs a C++ compiler")
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    return run
