"""A volunteer alone with its bad luck, as a real process."""

import json
from pathlib import Path

import pytest

from tests.training.forks import Fork
from tests.training.processes import PATIENCE
from training.averaging.optimizer import ordered_parameters
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.volunteer import backup

pytestmark = pytest.mark.swarm

SCRIPT = Path(__file__).with_name("unlucky.py")
CHECKPOINT_STEP = 10


def test_a_volunteer_outlives_its_bad_luck(tmp_path: Path) -> None:
    """With nobody there it begins at the published checkpoint, drops what is not sound, goes on
    from the last state that was, and keeps a sound backup when it leaves.
    """
    live, folder = tmp_path / "live", tmp_path / "volunteer"
    checkpoint.publish(LiveFolder(live), build_model(TINY), CHECKPOINT_STEP, None, "")
    words, terminal = [str(folder), str(live)], folder / "terminal.txt"
    code, said = Fork(words, folder, terminal, program=SCRIPT).run(PATIENCE)
    assert code == 0, said[-2000:]
    seen: dict[str, int] = json.loads((folder / "seen.json").read_text())
    assert seen["first step"] == CHECKPOINT_STEP
    assert f"continuing from the published checkpoint of step {CHECKPOINT_STEP}" in said
    assert seen["broken loss"] == CHECKPOINT_STEP + 1
    assert "a micro-batch's loss was not finite: dropping it" in said
    assert (seen["broken model"], seen["broken optimizer"]) == (13, 15)
    assert seen["rejected"] >= 4  # a loss, and three times weights
    assert seen["sound"]
    assert seen["last step"] > seen["huge weights"] > seen["broken optimizer"]
    kept = backup.load(folder / "backup.pt", ordered_parameters(build_model(TINY), TINY))
    assert kept.state.epoch >= seen["last step"]
