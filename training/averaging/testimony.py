"""A peer's report of an averaging round, for the run's records."""

import random

from training.averaging.reduction import Round
from training.records.owners import contributor_of
from training.records.reports import MOST_SEEN, Witness


def witnesses(seen: Round) -> list[Witness]:
    """Whom we averaged with, at random where there were many."""
    peers = list(seen.weights)
    chosen = random.sample(peers, min(MOST_SEEN, len(peers)))
    return [Witness(contributor=contributor_of(p), weight=seen.weights[p]) for p in chosen]
