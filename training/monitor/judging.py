"""Batches of a run's data on which updates are judged; nobody else knows them in advance."""

import logging
import queue
import random
import secrets
import threading
from collections.abc import Callable

import torch

from training.data import streaming
from training.data.ahead import LOOK_SECONDS
from training.data.streaming import Batch
from training.model.transformer import build_model
from training.run.recipes import Recipe
from training.sparse.assignment import SEQUENCES, pack_sequences
from training.sparse.judging import losses_on

logger = logging.getLogger(__name__)

POOL = 128  # batches, of which a few are drawn for each round


class HeldBatches:
    """Losses of a recipe's model on a few batches for each round.

    They come from the data in an order that follows from a secret of this process, so that a
    volunteer can't train for them. Batches that were disclosed give way to new ones, which a
    thread reads, so that no round waits for the data's host.

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
        self._samples = streaming.stream(recipe, self._secret, data or None, SEQUENCES, report, say)
        self._pool = [next(self._samples) for _ in range(POOL)]
        self._drawn = max(2, -(-judged // SEQUENCES))
        self._round: tuple[int, list[int]] | None = None  # and the places in the pool
        self._new: queue.Queue[Batch] = queue.Queue(self._drawn)
        self._reader: threading.Thread | None = None
        self._closed = threading.Event()
        self._model = build_model(recipe)
        self._model.train(mode=False)

    def __call__(self, number: int, weights: torch.Tensor) -> list[float]:
        """Mean loss of each batch of a round with the given weights."""
        return losses_on(self._model, weights, [self._pool[one] for one in self._places(number)])

    def disclose(self, number: int) -> bytes:
        """The file of a round's sequences; from the next round on, others take their places.

        As long as no new ones have come, they can be drawn again.
        """
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
        return pack_sequences([self._pool[one] for one in self._places(number)])

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._samples.closed.set()

    def _places(self, number: int) -> list[int]:
        """Places in the pool of a round's batches."""
        if self._round is None or self._round[0] != number:
            if self._round is not None and self._reader is not None:
                self._renew(self._round[1])
            chooser = random.Random(self._secret + number.to_bytes(8, "big"))
            self._round = number, chooser.sample(range(POOL), self._drawn)
        return self._round[1]

    def _renew(self, places: list[int]) -> None:
        for place in places:
            try:
                self._pool[place] = self._new.get_nowait()
            except queue.Empty:
                return

    def _read(self) -> None:
        try:
            for batch in self._samples:
                if not self._hand_over(batch):
                    return
        except Exception:  # the old batches serve on
            if not self._closed.is_set():
                logger.exception("no new batches for judging")

    def _hand_over(self, batch: Batch) -> bool:
        while not self._closed.is_set():
            try:
                self._new.put(batch, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False
