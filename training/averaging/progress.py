"""The run's progress, from the peers' reports, without believing every one of them.

The library takes the highest step in any report for the run's, adds up all samples claimed and
guesses from the paces claimed when the batch will be full. One liar could send all others after a
step that does not exist, or have them make steps of a single micro-batch.
"""

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from hivemind.optim.progress_tracker import GlobalTrainingProgress, ProgressTracker
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time

from training.averaging.paces import IDLE, Paces
from training.records.kinds import Progress
from training.records.owners import entries, identity_of

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
LIARS = 4  # of this many peers, one may claim a step that does not exist
OLDEST_SECONDS = 30.0  # a report's age: what its sender may have computed since counts, too


class CredibleTracker(ProgressTracker):
    """Hivemind's tracker, which believes what can be.

    Attributes:
        paces: credible samples a second of each peer; a new object whenever they were looked up.
        present: the identities of the peers in the run, this one among them.
        floor: a step that is believed whoever claims it, such as one the moderators ordered.
        callers: peers that call others and cannot be called themselves.
        reachable: peers that can be called, without those who only help.
        ceiling: the furthest step that was credible at the last look.
        helps: whether this peer averages without computing: then it is announced all the same.
        witnessed: what this peer saw of the others' paces.
        micro_batch_size: what a peer may claim whose pace is not known.
    """

    paces: dict[PeerID, float] | None = None
    present: tuple[str, ...] = ()
    floor: int = 0
    callers: tuple[PeerID, ...] = ()
    reachable: tuple[PeerID, ...] = ()
    ceiling: float = math.inf

    def __init__(
        self, *arguments: Any, helps: bool = False, micro_batch_size: int = 1, **options: Any
    ) -> None:
        self.helps, self._announced = helps, False
        self.witnessed, self.micro_batch_size = Paces(), micro_batch_size
        self._step_seen, self._step_began = -1, -math.inf
        super().__init__(*arguments, **options)

    def update_epoch(self, new_epoch: int | None = None) -> int:
        """Note the time as well: nobody can have computed much for the new step."""
        step: int = super().update_epoch(new_epoch)
        self._note_step(step)
        return step

    def _note_step(self, step: int) -> None:
        if step > self._step_seen:
            first = self._step_seen < 0  # others may have been at it for long
            self._step_seen = step
            self._step_began = -math.inf if first else time.monotonic()

    def _parse_swarm_progress_data(self, metadata: Any) -> GlobalTrainingProgress:
        own = str(self.dht.peer_id)
        records = read_progress(metadata)
        paces = self.witnessed.credible({p: r.samples_per_second for p, r in records.items()}, own)
        self.witnessed.forget_all_but(records)
        # the news of a step arrives late, by as much as the longest pause between two looks
        seconds = time.monotonic() - self._step_began + self.max_refresh_period
        limits = {
            peer: self.micro_batch_size + (pace * seconds if pace else 0.0)
            for peer, pace in paces.items()
        }
        believed = believe(records, paces, limits, self.target_batch_size, self.floor)
        self._note_peers(believed, paces)
        found = {
            # the library does not count the steps of those whom nobody can call: where all are
            # behind routers, each would follow itself alone
            peer: ValueWithExpiration(
                value=record.model_dump() | {"client_mode": False}, expiration_time=math.inf
            )
            for peer, record in believed.items()
        }
        progress = super()._parse_swarm_progress_data(found)
        progress.num_clients = len(self.callers)
        self._note_step(progress.epoch)
        return progress

    def _note_peers(self, believed: Mapping[str, Progress], paces: Mapping[str, float]) -> None:
        self.present = tuple(believed)
        self.paces = {PeerID(r.peer_id): paces[peer] for peer, r in believed.items()}
        self.callers = tuple(PeerID(r.peer_id) for r in believed.values() if r.client_mode)
        self.reachable = tuple(
            PeerID(r.peer_id)
            for r in believed.values()
            if not r.client_mode and r.samples_per_second > IDLE
        )
        self.ceiling = max([float(r.epoch) for r in believed.values()], default=math.inf)

    def look_now(self, seconds: float) -> bool:
        """Look at the others' progress without waiting for the next time; False if that fails."""
        self.fetched_global_progress_this_epoch.clear()
        self.global_progress.next_fetch_time = get_dht_time()
        self.global_state_updated.set()
        return bool(self.fetched_global_progress_this_epoch.wait(seconds))

    def furthest_step(self) -> int:
        """The furthest step that the others are at, looked up now; also while updates pause."""
        found = self.dht.get(self.training_progress_key, latest=True, return_future=True)
        try:
            answer = found.result(ANSWER_SECONDS)
        except TimeoutError:
            return 0
        metadata = answer.value if isinstance(answer, ValueWithExpiration) else None
        steps = [record.epoch for record in read_progress(metadata).values()]
        ceiling = max(self.floor, credible_step(steps))
        return max((step for step in steps if step <= ceiling), default=0)

    def announce(self, present: bool) -> None:
        """Announce that a helper is present, or has left."""
        self._announced = present
        if present:
            self.should_report_progress.set()
        else:
            self._store(None)

    def announce_arrival(self) -> None:
        """Announce us before the first samples; the library alone would wait for them."""
        self._store(self.local_progress.dict())

    def _store(self, progress: dict[str, Any] | None) -> None:
        self.dht.store(
            key=self.training_progress_key,
            subkey=self._local_public_key,
            value=progress,
            expiration_time=get_dht_time() + self.metadata_expiration,
            return_future=True,
        )

    async def _progress_reporter(self) -> None:
        """Publish our progress; that of a helper too, who computes nothing."""
        if not self.helps:
            await super()._progress_reporter()
            return
        pause = self.metadata_expiration / 2
        loop = asyncio.get_running_loop()
        while not self.shutdown_triggered.is_set():
            if self._announced:
                self._store(self.local_progress.dict())
                await asyncio.sleep(self.min_refresh_period)
            await loop.run_in_executor(None, self.should_report_progress.wait, pause)
            self.should_report_progress.clear()


def read_progress(metadata: Any) -> dict[str, Progress]:
    """The peers' reports by identity, without those that name another peer than their signer."""
    records = entries(ValueWithExpiration(metadata, math.inf), Progress.model_validate)
    return {peer: r for peer, r in records.items() if r.peer_id == identity_of(peer)}


def believe(
    records: Mapping[str, Progress],
    paces: Mapping[str, float],
    limits: Mapping[str, float],
    target_batch_size: int,
    floor: int = 0,
) -> dict[str, Progress]:
    """The peers' reports as far as they can be.

    Left out are those past the `credible_step`, or `floor` where that is further. Samples are cut
    to the peer's limit and a whole global step, paces to the credible ones, times to the past
    half minute.
    """
    ceiling = max(floor, credible_step([record.epoch for record in records.values()]))
    now = get_dht_time()
    believed = {}
    for peer, record in records.items():
        if record.epoch <= ceiling:
            most = min(float(target_batch_size), limits[peer])
            believed[peer] = record.model_copy(
                update={
                    "samples_accumulated": int(min(record.samples_accumulated, most)),
                    "samples_per_second": min(record.samples_per_second, paces[peer]),
                    "time": min(max(record.time, now - OLDEST_SECONDS), now),
                }
            )
    if len(believed) < len(records):
        logger.warning("%d peers claim a step past %d", len(records) - len(believed), ceiling)
    return believed


def credible_step(steps: list[int]) -> int:
    """The furthest step that can be, given what all peers claim; 0 when nobody claims anything.

    A quarter of the peers may be wrong. One further is possible: somebody is always first.

    >>> credible_step([10, 10, 11])  # three are too few to doubt one
    12
    >>> credible_step([10, 10, 11, 10**9])
    12
    """
    ordered = sorted(steps, reverse=True)
    return ordered[len(ordered) // LIARS] + 1 if ordered else 0
