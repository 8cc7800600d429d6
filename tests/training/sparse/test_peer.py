"""training/sparse/peer: local steps as the time allows; what has not been sent is not lost."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.sparse.codec import decode
from training.sparse.layout import Layout
from training.sparse.peer import ErrorFeedback, train_locally

RATE = 0.5
LAYOUT = Layout((128, 640))  # 1 in 64 is sent


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


def draw(seed: int) -> torch.Tensor:
    return torch.randn(LAYOUT.elements, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=20)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(0, 2**32))
def test_what_was_learned_was_sent_or_is_kept(was_taken: list[bool], seed: int) -> None:
    feedback = ErrorFeedback(LAYOUT)
    learned = torch.zeros(LAYOUT.elements, dtype=torch.float64)
    sent = torch.zeros(LAYOUT.elements, dtype=torch.float64)
    for number, taken in enumerate(was_taken):
        difference = draw(seed + number)
        content = feedback.offer(difference)
        feedback.settle(taken)
        learned += difference
        if taken:
            sent += decode(content, LAYOUT).dense(LAYOUT.elements)
    # each of the additions in 32 bits rounds a value of at most 30 * 6 by 2^-24 of it
    assert (learned - sent - feedback.residual).abs().max() < 60 * 180 * 2**-24


def test_a_steady_update_is_sent_in_full_over_time() -> None:
    feedback, difference, rounds = ErrorFeedback(LAYOUT), draw(0), 1000
    sent = torch.zeros(LAYOUT.elements)
    for _ in range(rounds):
        content = feedback.offer(difference)
        feedback.settle(was_taken=True)
        sent += decode(content, LAYOUT).dense(LAYOUT.elements)
    # 1 in 64 is sent at a time: what is left is about what 64 rounds bring
    assert (sent / rounds - difference).norm() / difference.norm() < 2 * 64 / rounds


def test_an_update_is_settled_before_the_next() -> None:
    feedback = ErrorFeedback(LAYOUT)
    feedback.offer(draw(0))
    with pytest.raises(RuntimeError, match="settle"):
        feedback.offer(draw(1))
