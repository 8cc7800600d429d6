"""training/sparse/peer.py: local steps, as many as the time allows."""

import itertools
import math

import pytest
import torch

from training.sparse.peer import train_locally
from training.sparse.shared import SharedState

RATE = 0.5


class Lesson:
    """A model of one weight vector whose gradients are given, each for 8 samples."""

    def __init__(self, gradients: list[float]) -> None:
        self.weights = torch.nn.Parameter(torch.zeros(3))
        self.optimizer = torch.optim.SGD([self.weights], lr=RATE)
        self._gradients = iter(gradients)
        self.steps = 0
        self.state = SharedState(torch.tensor([1.0, 2.0, 3.0]))

    def compute(self) -> int:
        self.steps += 1
        self.weights.grad = torch.full((3,), next(self._gradients))
        return 8

    def train(self, steps: int, norm: float = math.inf) -> tuple[torch.Tensor, int, int]:
        """Train with a clock that ticks once before each step."""
        ticks = itertools.count()
        difference, samples = train_locally(
            self.state.weights,
            [self.weights],
            self.optimizer,
            self.compute,
            steps,
            norm,
            clock=lambda: next(ticks),
        )
        return difference, samples, self.steps


def test_the_pseudo_gradient_is_how_far_the_local_steps_went() -> None:
    lesson = Lesson([1.0, 2.0, 3.0, 100.0])
    difference, samples, steps = lesson.train(3)
    assert difference.tolist() == [3.0] * 3  # RATE * (1 + 2 + 3)
    assert (samples, steps) == (24, 3)
    assert lesson.weights.tolist() == [-2.0, -1.0, 0.0]
    assert lesson.state.weights.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("gradients", "steps", "made"),
    [([2.0, 100.0], 0, 1), ([math.nan, 2.0, math.nan], 3, 3), ([math.inf, 2.0, math.inf], 3, 3)],
    ids=["a slow peer makes one step", "NaN changes nothing", "infinity changes nothing"],
)
def test_one_good_step_counts(gradients: list[float], steps: int, made: int) -> None:
    difference, *counted = Lesson(gradients).train(steps)
    assert difference.tolist() == [1.0] * 3
    assert counted == [8, made]


def test_a_long_gradient_is_shortened() -> None:
    difference, _, _ = Lesson([100.0]).train(1, norm=1.0)
    assert difference.norm().item() == pytest.approx(RATE, rel=1e-4)
