"""How far the run is, from what the peers tell, without believing every one of them.

The library takes the highest step that anybody tells for the run's and adds up all samples told:
one peer that tells of step 10^9 would send all others looking for a state that nobody has.
"""

import logging
import math
from collections.abc import Mapping
from typing import Any

from hivemind.optim.progress_tracker import (
    GlobalTrainingProgress,
    LocalTrainingProgress,
    ProgressTracker,
)
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration

from training.subkeys import peer_id_of

logger = logging.getLogger(__name__)

LIARS = 4  # of so many peers one may tell of a step that is not there


class CredibleTracker(ProgressTracker):
    """Hivemind's tracker, which leaves out records that cannot be.

    Attributes:
        paces: declared samples a second of each peer; a new object whenever they were looked up.
        floor: a step that is believed whoever tells of it, such as one the moderators ordered.
    """

    paces: dict[PeerID, float] | None = None
    floor: int = 0

    def _parse_swarm_progress_data(self, metadata: Any) -> GlobalTrainingProgress:
        records = believe(metadata or {}, self.target_batch_size, self.floor)
        self.paces = {PeerID(r.peer_id): r.samples_per_second for r in records.values()}
        entries = {
            subkey: ValueWithExpiration(value=record.dict(), expiration_time=math.inf)
            for subkey, record in records.items()
        }
        return super()._parse_swarm_progress_data(entries)


def believe(
    metadata: Mapping[bytes, Any], target_batch_size: int, floor: int = 0
) -> dict[bytes, LocalTrainingProgress]:
    """The records of the peers' progress by subkey, as far as they can be.

    Left out are those that name another peer than their signer and those past the
    `credible_step`, or `floor` where that is further; samples are cut at a whole global step.

    Args:
        metadata: what is stored in the DHT: values with the times at which they expire.
    """
    records = {}
    for subkey, entry in metadata.items():
        if entry.value is None:
            continue
        record = LocalTrainingProgress.parse_obj(entry.value)
        if PeerID(record.peer_id) == PeerID.from_base58(peer_id_of(subkey)):
            record.samples_accumulated = min(record.samples_accumulated, target_batch_size)
            records[subkey] = record
    ceiling = max(floor, credible_step([record.epoch for record in records.values()]))
    believed = {subkey: r for subkey, r in records.items() if r.epoch <= ceiling}
    if len(believed) < len(records):
        logger.warning("%d peers tell of a step past %d", len(records) - len(believed), ceiling)
    return believed


def credible_step(steps: list[int]) -> int:
    """The furthest step that can be, given what all peers tell; 0 when nobody tells anything.

    A quarter of the peers may be wrong. One further is possible: somebody is always first.

    >>> credible_step([10, 10, 11])  # three are too few to doubt one
    12
    >>> credible_step([10, 10, 11, 10**9])
    12
    """
    ordered = sorted(steps, reverse=True)
    return ordered[len(ordered) // LIARS] + 1 if ordered else 0
