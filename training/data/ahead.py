"""Batches made ahead of time by a thread, so that the device does not wait for the data."""

import queue
import threading
from collections.abc import Iterator
from typing import Any

from training.data.streaming import Batch, SampleStream

DEPTH = 2  # batches that wait; the buffer behind them is the stream's own
LOOK_SECONDS = 0.2


class BatchesAhead:
    """A stream whose next batches are being made while this one is computed on.

    The thread begins with the first batch asked for, so that none lives while the library forks.
    `state_dict` is as of the last batch given out: those made ahead are made again.

    Args:
        stream: what the batches come from; nobody else reads it.
        pin: keep batches where a GPU can fetch them by itself.
    """

    def __init__(self, stream: SampleStream, pin: bool = False) -> None:
        self.stream, self._pin = stream, pin
        self._made: queue.Queue[tuple[Batch, dict[str, Any]] | Exception] = queue.Queue(DEPTH)
        self._state = stream.state_dict()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def until(self, stop: threading.Event) -> Iterator[Batch]:
        """Batches until `stop` is set, also while one is waited for.

        What goes wrong in the thread is raised here.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        while not stop.is_set():
            try:
                made = self._made.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if isinstance(made, Exception):
                raise made
            batch, self._state = made
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The stream's position after the last batch handed out."""
        return self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of the stream; before the first batch only."""
        if self._thread is not None:
            raise RuntimeError("the stream is being read already")
        self.stream.load_state_dict(state)
        self._state = self.stream.state_dict()

    def close(self) -> None:
        """End the thread, within bounded time."""
        self._closed.set()
        self.stream.closed.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _work(self) -> None:
        try:
            for batch in self.stream:
                kept = {k: t.pin_memory() for k, t in batch.items()} if self._pin else batch
                if not self._hand_over((kept, self.stream.state_dict())):
                    return
        except Exception as error:  # raised again in the thread that asks
            self._hand_over(error)

    def _hand_over(self, made: tuple[Batch, dict[str, Any]] | Exception) -> bool:
        while not self._closed.is_set():
            try:
                self._made.put(made, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return True
        return False
