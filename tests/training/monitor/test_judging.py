"""training/monitor/judging: the sequences on which updates are judged."""

from training.model.build import build_model
from training.monitor.judging import SEQUENCES, HeldBatches
from training.run.recipes import TINY
from training.sparse.shared import SharedState

JUDGED = 16


def test_a_round_has_its_own_sequences_which_follow_from_a_secret() -> None:
    weights = SharedState.of([p for p in build_model(TINY).parameters() if p.requires_grad]).weights
    held, other = (HeldBatches(TINY, "", JUDGED, secret=secret) for secret in (b"test", b"other"))
    found = held(3, weights)
    assert len(found) == JUDGED // SEQUENCES
    assert held(4, weights) != found
    assert other(3, weights) != found
    assert held(3, weights) == found
