import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.swarm

SCRIPT = Path(__file__).with_name("expectant.py")


@pytest.mark.parametrize(("expected", "outcome"), [(2, "mean 0.5"), (3, "waiting for more")])
def test_a_group_closes_once_all_expected_are_there_and_not_before(
    expected: int, outcome: str
) -> None:
    ended = meet(str(expected))
    assert outcome in ended.stdout, ended.stderr


def test_a_cancelled_round_leaves_the_next_one_free() -> None:
    ended = meet("2", "--cancel")
    assert "mean 0.5" in ended.stdout, ended.stderr


def meet(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
