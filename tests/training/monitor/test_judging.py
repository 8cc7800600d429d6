"""training/monitor/judging: the sequences on which updates are judged."""

import pytest
import torch

from training.model.build import build_model
from training.monitor.judging import SEQUENCES, HeldBatches
from training.run.recipes import TINY
from training.sparse.shared import SharedState

JUDGED = 16


@pytest.fixture(scope="module")
def held() -> HeldBatches:
    return HeldBatches(TINY, "", JUDGED, secret=b"test")


@pytest.fixture(scope="module")
def weights() -> torch.Tensor:
    return SharedState.of([p for p in build_model(TINY).parameters() if p.requires_grad]).weights


def test_a_round_has_the_same_sequences_again(held: HeldBatches, weights: torch.Tensor) -> None:
    found = held(3, weights)
    assert len(found) == JUDGED // SEQUENCES
    assert held(4, weights) != found
    assert held(3, weights) == found


def test_another_secret_draws_other_sequences(held: HeldBatches, weights: torch.Tensor) -> None:
    assert HeldBatches(TINY, "", JUDGED, secret=b"other")(3, weights) != held(3, weights)
