"""Training together is training: four volunteers make the steps that one would make alone."""

import importlib.util
import json
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import torch

from training.model.build import build_model
from training.optimizer import lamb
from training.run.supervisor import Worker

pytestmark = pytest.mark.swarm

STEPS = 4
PATIENCE = 200.0
SCRIPT = Path(__file__).with_name("lockstep.py")


def load_lockstep() -> ModuleType:
    specification = importlib.util.spec_from_file_location("lockstep", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def train_alone() -> list[float]:
    """The plain loop: a batch of 64, the same optimizer, nobody else."""
    lockstep = load_lockstep()
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
    workers: list[Worker] = []
    try:
        peer: list[str] = []
        for index in range(4):
            place = folder / str(index)
            command = [sys.executable, str(SCRIPT), str(place), str(index), str(STEPS), *peer]
            workers.append(Worker(command, place, threads=1, log=place / "terminal.txt"))
            place.mkdir()
            workers[-1].start()
            if index == 0:
                wait_for(place / "address", workers)
                peer = [(place / "address").read_text()]
        for index in range(4):
            wait_for(folder / str(index) / "losses.json", workers)
    finally:
        for worker in workers:
            worker.kill()
    return [json.loads((folder / str(i) / "losses.json").read_text()) for i in range(4)]


def wait_for(path: Path, workers: list[Worker]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        for worker in workers:
            if worker.exit_code not in (None, 0):
                pytest.fail(f"a volunteer ended: {(worker.folder / 'terminal.txt').read_text()}")
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE:.0f} s in vain for {path.parent.name}/{path.name}")
        time.sleep(0.1)


def test_four_volunteers_of_16_train_as_one_with_64(tmp_path: Path) -> None:
    alone = train_alone()
    assert alone[-1] < alone[0]  # it learns, or equality would say nothing
    for losses in train_together(tmp_path):
        assert losses == pytest.approx(alone, abs=1e-5)
