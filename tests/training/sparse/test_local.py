"""training/sparse/peer.py: local steps, as many as the time allows."""

import itertools
import math

import pytest
import torch

from training.sparse.peer import train_locally

RATE = 0.5


def train(
    gradients: list[float], steps: int, norm: float = math.inf
) -> tuple[torch.Tensor, int, int, torch.Tensor]:
    """Train a vector from 1, 2, 3 on with gradients, each of 8 samples; a second passes a step.

    Returns:
        The pseudo-gradient, the samples and the steps that were made, and the vector.
    """
    weights, left = torch.nn.Parameter(torch.zeros(3)), iter(gradients)

    def compute() -> int:
        weights.grad = torch.full((3,), next(left))
        return 8

    start, optimizer = torch.tensor([1.0, 2.0, 3.0]), torch.optim.SGD([weights], lr=RATE)
    clock = itertools.count().__next__
    made = train_locally(start, [weights], optimizer, compute, steps, norm, clock=clock)
    assert start.tolist() == [1.0, 2.0, 3.0]
    return *made, len(gradients) - len(list(left)), weights


def test_the_pseudo_gradient_is_how_far_the_local_steps_went() -> None:
    difference, samples, steps, weights = train([1.0, 2.0, 3.0, 100.0], 3)
    assert difference.tolist() == [3.0] * 3  # RATE * (1 + 2 + 3)
    assert (samples, steps) == (24, 3)
    assert weights.tolist() == [-2.0, -1.0, 0.0]


@pytest.mark.parametrize(
    ("gradients", "steps", "made"),
    [([2.0, 100.0], 0, 1), ([math.nan, 2.0, math.nan], 3, 3), ([math.inf, 2.0, math.inf], 3, 3)],
    ids=["a slow peer makes one step", "NaN changes nothing", "infinity changes nothing"],
)
def test_one_good_step_counts(gradients: list[float], steps: int, made: int) -> None:
    difference, *counted, _ = train(gradients, steps)
    assert difference.tolist() == [1.0] * 3
    assert counted == [8, made]


def test_a_long_gradient_is_shortened() -> None:
    difference, *_ = train([100.0], 1, norm=1.0)
    assert difference.norm().item() == pytest.approx(RATE, rel=1e-4)
