from pathlib import Path

import pytest

from tests.training.averaging import expectant
from tests.training.forks import Fork
from tests.training.processes import PATIENCE


@pytest.mark.swarm
def test_a_group_closes_when_complete_and_a_cancelled_round_leaves_it_free(tmp_path: Path) -> None:
    program = Path(expectant.__file__)
    code, said = Fork([], tmp_path, tmp_path / "terminal.txt", program=program).run(PATIENCE)
    assert code == 0, said
    assert "waiting for LOOKING_FOR_GROUP" in said
    assert "mean 0.5" in said
