"""Training together is training: four volunteers make the steps that one would make alone."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from tests.training.averaging import lockstep
from tests.training.forks import Fork
from tests.training.processes import wait_for
from training.model.build import build_model
from training.optimizer import lamb

pytestmark = pytest.mark.swarm

STEPS = 4


def train_alone() -> list[float]:
    """The plain loop: a batch of 64, the same optimizer, nobody else."""
    model = build_model(lockstep.RECIPE)
    optimizer = lamb.build_optimizer(lockstep.RECIPE, lamb.parameter_groups(model, lockstep.RECIPE))
    schedule = lamb.build_schedule(lockstep.RECIPE, optimizer)
    losses = []
    for step in range(STEPS):
        quarters = [lockstep.make_batch(step, index) for index in range(lockstep.VOLUNTEERS)]
        batch = {key: torch.cat([q[key] for q in quarters]) for key in quarters[0]}
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(lockstep.held_out_loss(model))
    return losses


def train_together(folder: Path) -> list[list[float]]:
    """Four processes; the losses that each of them saw."""
    with ExitStack() as stack:
        volunteers = []
        for index in range(lockstep.VOLUNTEERS):
            place = folder / str(index)
            place.mkdir()
            words = [str(place), str(index), str(STEPS)]
            log = place / "terminal.txt"
            volunteers.append(Fork(words, place, log, program=Path(lockstep.__file__)))
            stack.callback(volunteers[-1].kill)
            volunteers[-1].start()
        for one in volunteers:
            wait_for(f"the end of {one.folder}", lambda one=one: one.exit_code is not None)
            assert one.exit_code == 0, (one.folder / "terminal.txt").read_text()
    return [json.loads((one.folder / "losses.json").read_text()) for one in volunteers]


def test_four_volunteers_of_16_train_as_one_with_64(tmp_path: Path) -> None:
    alone = train_alone()
    assert alone[-1] < alone[0]  # it learns, or equality would say nothing
    for losses in train_together(tmp_path):
        assert losses == pytest.approx(alone, abs=1e-5)
