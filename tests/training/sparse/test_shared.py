"""training/sparse/shared.py: the outer step, whose bits are the same at every peer."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import InputError
from tools.console import ROOT
from training.sparse.codec import Update, decode, encode
from training.sparse.layout import Layout
from training.sparse.shared import HEAVIEST, LONGEST, Contribution, SharedState, load, shares

LAYOUT = Layout((5000, 70, 3))
RATE = 0.7


def draw(seed: int) -> torch.Tensor:
    return torch.randn(LAYOUT.elements, generator=torch.Generator().manual_seed(seed))


def contributions(seed: int, samples: tuple[int, ...] = (64, 16, 48)) -> list[Contribution]:
    """Updates as peers decode them."""
    return [
        Contribution.of(count, decode(encode(1e-3 * draw(100 * seed + place), LAYOUT), LAYOUT))
        for place, count in enumerate(samples)
    ]


def of_norm(norm: float) -> Update:
    return Update(torch.tensor([0]), torch.tensor([norm]), norm)


def test_the_outer_step_is_that_of_plain_descent_on_the_mean_by_samples() -> None:
    state = SharedState(draw(0))
    reference = torch.nn.Parameter(draw(0).double())
    optimizer = torch.optim.SGD([reference], lr=RATE)
    for round_number in range(5):
        given_updates = contributions(round_number)
        state.step(given_updates, RATE)
        reference.grad = sum(
            (one.samples / 128 * one.read().dense(LAYOUT.elements).double()
             for one in given_updates),
            torch.zeros(LAYOUT.elements, dtype=torch.float64),
        )  # fmt: skip
        optimizer.step()
    # every element has gone through at most 25 operations of 32 bits, each off by 2^-24 at most
    error = (state.weights.double() - reference.detach()).abs()
    assert (error <= 25 * 2**-24 * draw(0).abs().clamp_min(0.1)).all()
    assert (state.round, state.samples) == (5, 5 * 128)


_STEPS = """
import sys, torch
torch.set_num_threads(2)
from tests.training.sparse.test_shared import step_as_in
print(step_as_in(sys.argv[1]))
"""


def step_as_in(path: str | Path) -> str:
    """Make the rounds in a file of weights and encoded updates; give the digest afterwards."""
    weights, rounds = torch.load(path)
    state = SharedState(weights)
    for updates in rounds:
        decoded = [decode(bytes(update.tolist()), LAYOUT) for update in updates]
        state.step([Contribution.of(16 * n, one) for n, one in enumerate(decoded, 1)], RATE)
    return state.digest()


def test_the_bits_depend_neither_on_threads_nor_on_vector_instructions(tmp_path: Path) -> None:
    path = tmp_path / "rounds.pt"
    rounds = [
        [torch.tensor(list(encode(1e-3 * draw(10 * n + place), LAYOUT))) for place in range(3)]
        for n in range(3)
    ]
    torch.save((draw(0), rounds), path)
    command = [sys.executable, "-W", "ignore", "-c", _STEPS, str(path)]
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    answer = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
    assert answer.strip() == step_as_in(path)


def test_the_digest_changes_with_every_part_of_the_state() -> None:
    state = SharedState(draw(0))
    states = [state.copy() for _ in range(4)]
    states[1].weights[3] = torch.nextafter(states[1].weights[3], torch.tensor(9.0))
    states[2].round = 1
    states[3].samples = 1
    digests = [one.digest() for one in states]
    assert len(set(digests)) == 4
    assert digests[0] == state.digest()


def test_weights_reach_the_model_and_come_back() -> None:
    model = torch.nn.Linear(7, 5)
    state = SharedState.of(list(model.parameters()))
    other = torch.nn.Linear(7, 5)
    load(state.weights, list(other.parameters()))
    assert torch.equal(model.weight, other.weight)
    assert SharedState.of(list(other.parameters())).digest() == state.digest()


@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(1e-6, 1e6)), min_size=1, max_size=9))
def test_no_peer_counts_more_than_the_limits_allow(told: list[tuple[int, float]]) -> None:
    given_updates = [Contribution.of(samples, of_norm(norm)) for samples, norm in told]
    factors = shares(given_updates)
    assert sum(factors) <= 1 + 1e-6
    most = HEAVIEST * median(samples for samples, _ in told)
    counted = sum(min(samples, most) for samples, _ in told)
    longest = LONGEST * median(norm for _, norm in told)
    for factor, (samples, norm) in zip(factors, told, strict=True):
        assert factor <= most / counted * (1 + 1e-6)
        assert factor * norm <= min(samples, most) / counted * longest * (1 + 1e-6)


def test_equal_norms_are_weighted_by_their_samples_alone() -> None:
    factors = shares([Contribution.of(n, of_norm(1.0)) for n in (1, 2, 5)])
    assert factors == pytest.approx([1 / 8, 2 / 8, 5 / 8])


def test_without_updates_only_the_number_changes_and_none_may_have_no_samples() -> None:
    state = SharedState(draw(0), round_number=7, samples=50)
    before = state.digest()
    with pytest.raises(InputError, match="samples"):
        state.step([Contribution.of(count, of_norm(1.0)) for count in (4, 0)], RATE)
    assert state.digest() == before
    state.step([], RATE)
    assert (state.round, state.samples) == (8, 50)
    assert torch.equal(state.weights, draw(0))
