"""How far the run is, from what the peers tell, without believing every one of them.

The library takes the highest step that anybody tells for the run's and adds up all samples told:
one peer that tells of step 10^9 would send all others looking for a state that nobody has.
"""

import logging
import math
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
        records = self._read(metadata) if isinstance(metadata, dict) else {}
        self.paces = {
            PeerID.from_base58(peer): record.samples_per_second
            for peer, (_, record) in records.items()
        }
        ceiling = max(self.floor, credible_step([r.epoch for _, r in records.values()]))
        believed = {
            subkey: self._bounded(record)
            for subkey, record in records.values()
            if record.epoch <= ceiling
        }
        if len(believed) < len(records):
            logger.warning("%d peers tell of a step past %d", len(records) - len(believed), ceiling)
        return super()._parse_swarm_progress_data(believed)

    def _read(self, metadata: dict[bytes, Any]) -> dict[str, tuple[bytes, LocalTrainingProgress]]:
        """The records by peer, without those that tell of another peer than their signer."""
        records = {}
        for subkey, entry in metadata.items():
            if entry.value is None:
                continue
            record = LocalTrainingProgress.parse_obj(entry.value)
            peer = peer_id_of(subkey)
            if PeerID(record.peer_id) == PeerID.from_base58(peer):
                records[peer] = (subkey, record)
        return records

    def _bounded(self, record: LocalTrainingProgress) -> ValueWithExpiration:
        samples = min(record.samples_accumulated, self.target_batch_size)
        return ValueWithExpiration(
            value=record.dict() | {"samples_accumulated": samples}, expiration_time=math.inf
        )


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
