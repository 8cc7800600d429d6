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
    command = [sys.executable, str(SCRIPT), str(expected)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert outcome in ended.stdout, ended.stderr
