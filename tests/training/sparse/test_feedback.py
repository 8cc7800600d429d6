"""training/sparse/peer.py: what has not been sent is not lost."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.sparse.codec import decode
from training.sparse.layout import Layout
from training.sparse.peer import ErrorFeedback

LAYOUT = Layout((128, 640))  # 1 in 64 is sent


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
