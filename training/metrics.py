"""What each volunteer tells of its work, signed with its key and stored in the DHT.

All volunteers write under one key, each its own subkey, which carries its public key: no one
can write another's figures, and a record that is not shaped as below is refused by every peer.
A record tells totals since the volunteer's start and its last few steps, so that a reader who
missed some still counts everything.
"""

import hashlib
import math
from typing import Any

from hivemind import DHT
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import BytesWithPublicKey, SchemaValidator
from hivemind.dht.validation import RecordValidatorBase
from hivemind.optim.progress_tracker import TrainingProgressSchema
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey
from pydantic.v1 import BaseModel, confloat, conint, conlist, constr

RECENT_STEPS = 8  # a reader may look as rarely as once in this many global steps
EXPIRATION_SECONDS = 600.0

_Count = conint(ge=0, strict=True)
_Amount = confloat(ge=0.0, lt=math.inf, strict=True)


class StepReport(BaseModel):
    """A volunteer's part in one global step, which it finished at `time`.

    `loss` is the sum over its `mini_steps`, bytes are those since its step before.
    """

    step: _Count  # type: ignore[valid-type]
    time: _Amount  # type: ignore[valid-type]
    samples: _Count  # type: ignore[valid-type]
    loss: _Amount  # type: ignore[valid-type]
    mini_steps: _Count  # type: ignore[valid-type]
    bytes_sent: _Count  # type: ignore[valid-type]
    bytes_received: _Count  # type: ignore[valid-type]


class PeerReport(BaseModel):
    """A volunteer's totals since `session`, the time of its start (seconds since 1970)."""

    name: constr(regex=r"^[\w .@-]{1,40}$", strict=True)  # type: ignore[valid-type]
    state: constr(regex="^(training|syncing|left)$", strict=True)  # type: ignore[valid-type]
    session: _Amount  # type: ignore[valid-type]
    time: _Amount  # type: ignore[valid-type]
    step: _Count  # type: ignore[valid-type]
    samples: _Count  # type: ignore[valid-type]
    samples_per_second: _Amount  # type: ignore[valid-type]
    steps: _Count  # type: ignore[valid-type]
    rejected: _Count  # type: ignore[valid-type]
    recent: conlist(StepReport, max_items=RECENT_STEPS)  # type: ignore[valid-type]


class MetricsSchema(BaseModel):
    """The shape of everything under the key ``{run}_metrics``."""

    metrics: dict[BytesWithPublicKey, PeerReport | None]


def make_validators(run: str, key: RSAPrivateKey) -> list[RecordValidatorBase]:
    """What every peer of a run checks of every record: its shape and its signature."""
    return [
        SchemaValidator(MetricsSchema, prefix=run),
        SchemaValidator(TrainingProgressSchema, prefix=run),
        RSASignatureValidator(key),
    ]


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


def contributor_id(subkey: bytes) -> str:
    """A short public name for a key: the first 12 digits of its SHA-256."""
    return hashlib.sha256(subkey).hexdigest()[:12]
