"""A volunteer's part in judging: it measures the updates that a round assigns to it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from training.access.grants import peer_id_of
from training.access.signatures import PeerKey
from training.model.layout import Layout
from training.sparse import assignment, closing, payload, verdict
from training.sparse.assignment import Assignment, Batch
from training.sparse.closing import ClosingError
from training.sparse.judging import applied, compare, losses_on
from training.sparse.shared import SharedState
from training.sparse.store import StoreError
from training.sparse.swarm import Swarm
from training.sparse.verdict import Finding
from training.sparse.web_store import WebStore

logger = logging.getLogger(__name__)


class Allowance:
    """Seconds that may go into something: a share of all time since the beginning.

    Args:
        clock: gives seconds.

    Attributes:
        spent: seconds so far.
        parts: that took them.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.spent, self.parts = 0.0, 0
        self._share, self._clock, self._begun = share, clock, clock()

    def covers(self, parts: int) -> bool:
        """True if so many more parts, of the mean length so far, are within the share."""
        more = parts * self.spent / max(self.parts, 1)
        return self.spent + more < self._share * (self._clock() - self._begun)

    @property
    def fraction(self) -> float:
        """The part of the time since the beginning that was spent."""
        return self.spent / max(self._clock() - self._begun, 1e-9)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Count the time until the block's end as a part."""
        start = self._clock()
        try:
            yield
        finally:
            self.spent += self._clock() - start
            self.parts += 1


class UpdateJudge:
    """Measures updates of other volunteers, as far as its allowance goes.

    Args:
        model: whose weights are overwritten; its next round loads its own again.
        layout: of the model's sequences.
        share: of this volunteer's time that judging may take.

    Attributes:
        judged: updates that were measured.
        allowance: of time.
    """

    def __init__(
        self,
        swarm: Swarm,
        store: WebStore,
        model: torch.nn.Module,
        layout: Layout,
        key: PeerKey,
        share: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.judged, self.allowance = 0, Allowance(share, clock)
        self._swarm, self._store, self._model, self._layout = swarm, store, model, layout
        self._key = key
        self._identity = peer_id_of(key.get_public_key().to_bytes().decode())
        self._answered = -1  # the newest round

    def judge(self, state: SharedState, stop: threading.Event) -> None:
        """Measure what the open round assigns to us, and hand in the verdict.

        Once `stop` is set, no further measurement is begun.

        A failure is logged: nobody's round depends on it.
        """
        if state.round == self._answered:
            return
        try:
            self._judge(state, stop)
        except (RuntimeError, IndexError) as error:  # of a store, a file or the device
            logger.info("no verdict: %s", error)

    def _judge(self, state: SharedState, stop: threading.Event) -> None:
        of = self._swarm.round_of(state)
        found = assignment.find(self._swarm, of)
        if found is None:
            return
        self._answered = state.round
        announced, assigned = found
        share = assigned.shares.get(self._identity)
        if share is None:
            return
        findings = {}
        if self.allowance.covers(1 + len(share)):
            findings = self._measure(state, assigned, share, stop)
        self._store.judge(verdict.write(of, announced, findings, self._key))
        self.judged += len(findings)

    def _measure(
        self,
        state: SharedState,
        assigned: Assignment,
        share: Sequence[str],
        stop: threading.Event,
    ) -> dict[str, Finding]:
        findings = {}
        was_training = self._model.training
        self._model.eval()
        try:
            with self.allowance.part():
                batches = self._fetch_sequences(assigned.sequences)
                before = losses_on(self._model, state.weights, batches)
            for sha256 in share:
                if stop.is_set() or not self.allowance.covers(1):
                    break
                with self.allowance.part():
                    try:
                        after = self._losses_with(state, assigned, sha256, batches)
                    except (ClosingError, StoreError) as error:
                        logger.info("an update is not judged: %s", error)
                        continue
                    findings[sha256] = compare(before, after)
        finally:
            self._model.train(was_training)
        return findings

    def _losses_with(
        self, state: SharedState, assigned: Assignment, sha256: str, batches: list[Batch]
    ) -> list[float]:
        self._store.fetch_ahead(sha256, payload.most_bytes(self._swarm.layout))
        update = closing.read_update(self._swarm, assigned.of, sha256)
        return losses_on(self._model, applied(state.weights, update), batches)

    def _fetch_sequences(self, sha256: str) -> list[Batch]:
        lengths = self._layout.text_length, self._layout.image_length
        content = self._store.get(sha256, assignment.most_sequence_bytes(*lengths))
        return assignment.unpack_sequences(content, *lengths)
