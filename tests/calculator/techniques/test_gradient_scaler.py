"""A loss that is scaled before the backward pass; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.estimate import estimate
from calculator.plan import Checkpointing, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve

PLAN = Plan(sequence_length=64, gradient_scaler=True)
PLAIN = replace(PLAN, gradient_scaler=False)
BLOCK = 512  # bytes of the smallest tensor in PyTorch's allocator


def test_a_scaler_keeps_two_numbers_and_one_more_during_the_update() -> None:
    model = find_model("gpt2-s")
    with_it, without = (estimate(model, plan).phases for plan in (PLAN, PLAIN))
    for phase, memory in with_it.items():
        assert memory.optimizer - without[phase].optimizer == 2 * BLOCK
    update = with_it[Phase.UPDATE].temporaries - without[Phase.UPDATE].temporaries
    assert update == BLOCK


@pytest.mark.parametrize("options", [{"update": "fused"}, {"optimizer": "sgd"}])
def test_without_temporaries_the_division_of_gradients_is_the_peak(options: dict[str, Any]) -> None:
    # torch.amp.GradScaler.unscale_: two numbers and a copy of each for the device
    memory = estimate(find_model("gpt2-s"), replace(PLAN, **options)).phases[Phase.UPDATE]
    assert memory.temporaries == 4 * BLOCK


def test_the_scaled_loss_lives_beside_the_loss() -> None:
    model = replace(find_model("gpt2-s"), layers=6)
    plan = replace(PLAN, checkpointing=Checkpointing.FULL)
    for one in (PLAN, plan):
        with_it = estimate(model, one).phases[Phase.BACKWARD]
        without = estimate(model, replace(one, gradient_scaler=False)).phases[Phase.BACKWARD]
        assert with_it.total - without.total == 2 * BLOCK + BLOCK
        assert curve(model, one).peak.memory.total == estimate(model, one).gpu.total


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.HALF, Precision.MIXED])
def test_without_autocast_it_means_nothing(precision: Precision) -> None:
    model = find_model("gpt2-s")
    plan = replace(PLAN, precision=precision)
    assert resolve(model, plan) == resolve(model, replace(plan, gradient_scaler=False))
