"""training/monitor/judging: the sequences on which updates are judged."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from training.data import streaming
from training.model.transformer import build_model
from training.monitor.judging import POOL, HeldBatches
from training.run.recipes import TINY
from training.sparse.assignment import SEQUENCES, unpack_sequences
from training.sparse.judging import losses_on
from training.sparse.panel import ROUNDING
from training.sparse.shared import SharedState

JUDGED = 16
LENGTHS = TINY.model.text_length, TINY.model.image_side**2


@pytest.fixture
def held(tmp_path: Path) -> Iterator[HeldBatches]:
    data = str(streaming.prepare_shapes(TINY))
    held = HeldBatches(TINY, data, JUDGED, secret=b"test")
    yield held
    held.close()


@pytest.fixture
def weights() -> torch.Tensor:
    return SharedState.of([p for p in build_model(TINY).parameters() if p.requires_grad]).weights


def test_whoever_has_the_disclosed_sequences_measures_the_same(
    held: HeldBatches, weights: torch.Tensor
) -> None:
    """A volunteer on a processor computes attention in another order, so it rounds otherwise."""
    own = held(3, weights)
    batches = unpack_sequences(held.disclose(3), *LENGTHS)
    assert len(batches) == len(own) == JUDGED // SEQUENCES
    model = build_model(TINY).train()
    model.attend_in_lines()
    theirs = losses_on(model, weights, batches)
    assert theirs == pytest.approx(own, abs=0.1 * ROUNDING)


def test_disclosed_sequences_are_not_used_again(held: HeldBatches) -> None:
    disclosed = set()
    for number in range(2 * POOL * SEQUENCES // JUDGED):
        for batch in unpack_sequences(held.disclose(number), *LENGTHS):
            key = batch["image_codes"].numpy().tobytes()
            assert key not in disclosed, number
            disclosed.add(key)
        deadline = time.monotonic() + 20
        while not held._new.full() and time.monotonic() < deadline:
            time.sleep(0.001)
    assert len(disclosed) == 2 * POOL


def test_without_new_ones_judging_goes_on(held: HeldBatches, weights: torch.Tensor) -> None:
    """While the data's host is down, say."""
    held.close()
    for number in range(3):
        held.disclose(number)
        assert len(held(number, weights)) == JUDGED // SEQUENCES
