"""Batches of a run's data on which updates are judged; nobody else knows them."""

import random
import secrets
from collections.abc import Callable

import torch

from training.data import streaming
from training.model.build import build_model
from training.run.recipes import Recipe
from training.sparse.judging import losses_on

POOL = 128  # batches, of which a few are drawn for each round
SEQUENCES = 4  # of a batch


class HeldBatches:
    """Losses of a recipe's model on a few batches for each round, on the GPU where there is one.

    They come from the data in an order that follows from a secret of this process, so that a
    volunteer can't train for them.

    Args:
        data: folder or data set; empty: the recipe's.
        judged: sequences for each round.
        say: told what is waited for.
        secret: that the order follows from; by default a new one.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: str,
        judged: int,
        say: Callable[[str], None] | None = None,
        secret: bytes = b"",
    ) -> None:
        self._secret = secret or secrets.token_bytes(16)
        samples = streaming.stream(recipe, self._secret, data or None, SEQUENCES, say)
        self._pool = [next(samples) for _ in range(POOL)]
        samples.closed.set()
        self._drawn = max(2, -(-judged // SEQUENCES))
        self._model = build_model(recipe)
        torch.nn.Module.to(self._model, "cuda" if torch.cuda.is_available() else "cpu")
        self._model.train(mode=False)

    def __call__(self, number: int, weights: torch.Tensor) -> list[float]:
        """Mean loss of each batch of a round with the given weights."""
        chooser = random.Random(self._secret + number.to_bytes(8, "big"))
        batches = [self._pool[place] for place in chooser.sample(range(POOL), self._drawn)]
        return losses_on(self._model, weights, batches)
