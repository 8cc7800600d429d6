"""Losses by which a monitor judges updates: on batches of the run's data that nobody else knows."""

import random
import secrets
from collections.abc import Callable

import torch

from training.data import streaming
from training.model.transformer import build_model
from training.run.recipes import Recipe
from training.sparse.shared import load

SEQUENCES = 4  # of a batch
POOL = 128  # batches, of which a few are drawn for each round


class HeldBatches:
    """Losses of a recipe's model on a few batches for each round.

    They are drawn from the data in an order that follows from a secret of this process, so that a
    volunteer can't train for them.

    Args:
        data: folder or data set; empty: the recipe's.
        judged: sequences for each round.
        report: told how many per cent are done where the data are made on this machine first.
        say: told what is waited for.
        secret: that the order follows from; by default a new one.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: str,
        judged: int,
        report: Callable[[int], None] | None = None,
        say: Callable[[str], None] | None = None,
        secret: bytes = b"",
    ) -> None:
        self._secret = secret or secrets.token_bytes(16)
        samples = streaming.stream(recipe, self._secret, data or None, SEQUENCES, report, say)
        self._pool = [next(samples) for _ in range(POOL)]
        self._drawn = max(2, -(-judged // SEQUENCES))
        self._model = build_model(recipe)
        self._model.train(mode=False)
        self._parameters = [p for p in self._model.parameters() if p.requires_grad]

    @torch.no_grad()
    def __call__(self, number: int, weights: torch.Tensor) -> list[float]:
        """Mean loss of each batch of a round with the given weights."""
        load(weights, self._parameters)
        chooser = random.Random(self._secret + number.to_bytes(8, "big"))
        drawn = chooser.sample(self._pool, self._drawn)
        return [float(self._model(**batch).loss) for batch in drawn]
