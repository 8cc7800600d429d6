"""A volunteer alone with its bad luck, as a real process."""

import json
from pathlib import Path

import pytest
import torch

from tests.training.forks import Fork
from tests.training.processes import PATIENCE
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.volunteer import backup

pytestmark = pytest.mark.swarm

SCRIPT = Path(__file__).with_name("unlucky.py")
CHECKPOINT_STEP = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unlucky")
    checkpoint.publish(LiveFolder(folder / "live"), build_model(TINY), CHECKPOINT_STEP, None, "")
    place = folder / "volunteer"
    words = [str(place), str(folder / "live")]
    code, said = Fork(words, place, place / "terminal.txt", program=SCRIPT).run(PATIENCE)
    assert code == 0, said[-2000:]
    return place


def see(folder: Path) -> dict[str, int]:
    seen: dict[str, int] = json.loads((folder / "seen.json").read_text())
    return seen


def test_with_nobody_there_it_begins_at_the_published_checkpoint(folder: Path) -> None:
    assert see(folder)["first step"] == CHECKPOINT_STEP
    text = (folder / "terminal.txt").read_text()
    assert f"continuing from the published checkpoint of step {CHECKPOINT_STEP}" in text


def test_a_loss_that_is_not_finite_is_left_out_and_the_volunteer_told(folder: Path) -> None:
    assert see(folder)["broken loss"] == CHECKPOINT_STEP + 1
    text = (folder / "terminal.txt").read_text()
    assert "a micro-batch's loss was not finite: dropping it" in text


def test_weights_that_are_not_sound_are_left_for_the_last_state_that_was(folder: Path) -> None:
    seen = see(folder)
    assert (seen["broken model"], seen["broken optimizer"]) == (13, 15)
    assert seen["rejected"] >= 4  # a loss, and three times weights
    assert seen["sound"]
    assert seen["last step"] > seen["huge weights"] > seen["broken optimizer"]


def test_leaving_keeps_a_sound_backup(folder: Path) -> None:
    kept = backup.load(folder / "backup.pt", list_of_parameters())
    assert kept.state.epoch >= see(folder)["last step"]


def list_of_parameters() -> list[torch.nn.Parameter]:
    from training.averaging.optimizer import ordered_parameters

    return ordered_parameters(build_model(TINY), TINY)
