"""What each volunteer tells of its work, signed with its key and stored in the DHT.

All volunteers write under one key, each its own subkey, which carries its public key: no one
can write another's figures, and a record that is not shaped as below is refused by every peer.
A record tells totals since the volunteer's start and its last few steps, so that a reader who
missed some still counts everything. With each step goes what the volunteer saw of the others in
the averaging, so that nobody's word is taken for its own work alone.
"""

import logging
import math
import multiprocessing
from typing import Any

from hivemind import DHT
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import BytesWithPublicKey, SchemaValidator
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.optim.progress_tracker import TrainingProgressSchema
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey
from pydantic.v1 import BaseModel, confloat, conint, conlist, constr

from training.milestones import Milestone
from training.orders import OrdersSchema
from training.subkeys import contributor_id

logger = logging.getLogger(__name__)

LONGEST_NAME = 40  # characters of what a volunteer wants to be called
RECENT_STEPS = 8  # a reader may look as rarely as once in this many global steps
MOST_SEEN = 16  # others that a record tells of: enough for each to have several witnesses
EXPIRATION_SECONDS = 600.0

_Count = conint(ge=0, strict=True)
_Amount = confloat(ge=0.0, lt=math.inf, strict=True)
_Identity = constr(regex="^[0-9a-f]{12}$", strict=True)
_Milestone = constr(regex=f"^({'|'.join(Milestone)})$", strict=True)

_refused = multiprocessing.Value("q", 0)  # shared with the DHT's process


class Witness(BaseModel):
    """Another volunteer in the same averaging; `weight` in samples is None where it was not seen.

    Whoever averages nothing, such as a peer behind a firewall, sees who is in the group only.
    """

    contributor: _Identity  # type: ignore[valid-type]
    weight: _Amount | None  # type: ignore[valid-type]


class StepReport(BaseModel):
    """A volunteer's part in one global step, which it finished at `time`.

    `loss` is the sum over its `mini_steps`, bytes are those since its step before, `seen` are
    others with whom it averaged.
    """

    step: _Count  # type: ignore[valid-type]
    time: _Amount  # type: ignore[valid-type]
    samples: _Count  # type: ignore[valid-type]
    loss: _Amount  # type: ignore[valid-type]
    mini_steps: _Count  # type: ignore[valid-type]
    bytes_sent: _Count  # type: ignore[valid-type]
    bytes_received: _Count  # type: ignore[valid-type]
    seen: conlist(Witness, max_items=MOST_SEEN) = []  # type: ignore[valid-type]


class PeerReport(BaseModel):
    """A volunteer's totals since `session`, the time of its start (seconds since 1970).

    `milestones` are the seconds to its first gradient, see `training.milestones`.
    """

    name: constr(regex=rf"^[\w .@-]{{1,{LONGEST_NAME}}}$", strict=True)  # type: ignore[valid-type]
    state: constr(regex="^(training|syncing|left)$", strict=True)  # type: ignore[valid-type]
    session: _Amount  # type: ignore[valid-type]
    time: _Amount  # type: ignore[valid-type]
    step: _Count  # type: ignore[valid-type]
    samples: _Count  # type: ignore[valid-type]
    samples_per_second: _Amount  # type: ignore[valid-type]
    steps: _Count  # type: ignore[valid-type]
    rejected: _Count  # type: ignore[valid-type]
    recent: conlist(StepReport, max_items=RECENT_STEPS)  # type: ignore[valid-type]
    milestones: dict[_Milestone, _Amount] = {}  # type: ignore[valid-type]


class MetricsSchema(BaseModel):
    """The shape of everything under the key ``{run}_metrics``."""

    metrics: dict[BytesWithPublicKey, PeerReport | None]


class NotedShapes(SchemaValidator):
    """Hivemind's validator of shapes, which says what it refuses."""

    def validate(self, record: DHTRecord) -> bool:
        """Tell whether a record is shaped as the schema says."""
        valid = bool(super().validate(record))
        if not valid:
            _note("a record of the wrong shape")
        return valid


class NotedSignatures(RSASignatureValidator):
    """Hivemind's validator of signatures, which says what it refuses."""

    def validate(self, record: DHTRecord) -> bool:
        """Tell whether a record under somebody's key is signed with it."""
        try:
            valid = bool(super().validate(record))
        except ValueError:  # the key in the record is none
            valid = False
        if not valid:
            _note("a record that its owner did not sign")
        return valid


def make_validators(run: str, key: RSAPrivateKey) -> list[RecordValidatorBase]:
    """What every peer of a run checks of every record: its shape and its signature."""
    return [
        NotedShapes(MetricsSchema, prefix=run),
        NotedShapes(TrainingProgressSchema, prefix=run),
        NotedShapes(OrdersSchema, prefix=run),
        NotedSignatures(key),
    ]


def refused_records() -> int:
    """Count the records that this peer's part of the DHT has refused since its start."""
    return int(_refused.value)


def _note(what: str) -> None:
    with _refused.get_lock():
        _refused.value += 1
        count = _refused.value
    if count & (count - 1) == 0:  # the 1st, 2nd, 4th, 8th ...: a flood must not fill the disk
        logger.warning("%s was refused (%d refused so far)", what, count)


def publish(dht: DHT, run: str, subkey: bytes, report: PeerReport) -> None:
    """Send a report on its way without waiting for it to arrive."""
    dht.store(
        key=f"{run}_metrics",
        subkey=subkey,
        value=report.dict(),
        expiration_time=get_dht_time() + EXPIRATION_SECONDS,
        return_future=True,
    )


def collect(dht: DHT, run: str, timeout: float) -> dict[str, PeerReport]:
    """The newest report of each volunteer by `contributor_id`, within `timeout` seconds.

    Raises:
        TimeoutError: when the DHT does not answer in time.
    """
    found = dht.get(f"{run}_metrics", latest=True, return_future=True).result(timeout)
    records: dict[bytes, Any] = found.value if found and isinstance(found.value, dict) else {}
    return {
        contributor_id(subkey): PeerReport.parse_obj(record.value)
        for subkey, record in records.items()
        if record.value is not None
    }
