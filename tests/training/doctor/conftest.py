"""A setup that is fine, to be made worse."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from training.doctor.findings import Finding, Verdict
from training.doctor.setup import Setup
from training.run.runfile import RunFile

MakeSetup = Callable[..., Setup]


@pytest.fixture
def make_setup(tmp_path: Path) -> MakeSetup:
    """Makes a setup of the tiny recipe; fields of the run file go in as `run=`."""

    def make(run: dict[str, Any] | None = None, **fields: Any) -> Setup:
        run_file = RunFile(**{"name": "our-run", "recipe": "tiny", **(run or {})})
        return Setup(run_file, **{"folder": tmp_path / "volunteer", "host": "127.0.0.1", **fields})

    return make


def expect(
    findings: Iterable[Finding],
    verdict: Verdict,
    cause: str = "",
    fix: str = "",
    passes: bool | None = None,
) -> Finding:
    """The only finding, which has a verdict, and words in its cause and its fix."""
    (finding,) = findings
    assert passes in (None, finding.passes)
    assert finding.verdict is verdict
    assert cause in finding.cause
    assert fix in finding.fix
    return finding
