"""Records as peers of a run seal them, and as liars would."""

from dataclasses import replace
from typing import Any

from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import DHTRecord, RecordValidatorBase
from hivemind.p2p import PeerID
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from training.access import envelope
from training.records import validator
from training.records.owners import peer_id_of, tag_of
from training.records.validator import RecordValidator

RUN = "records"
serialize = DHTProtocol.serializer.dumps


def subkey_of(key: RSAPrivateKey) -> bytes:
    return tag_of(key.get_public_key().to_bytes().decode())


def identity(key: RSAPrivateKey) -> bytes:
    return PeerID.from_base58(peer_id_of(subkey_of(key))).to_bytes()


def make_record(name: str, subkey: object, value: object, seconds: float = 300.0) -> DHTRecord:
    """An unsigned record of the run, such as a peer hands to its DHT."""
    key = DHTID.generate(f"{RUN}{name}").to_bytes()
    return DHTRecord(key, serialize(subkey), serialize(value), get_dht_time() + seconds)


def sealed(record: DHTRecord, key: RSAPrivateKey, membership: Any = None) -> DHTRecord:
    """As its owner signs it, who may have access to the run."""
    return replace(record, value=RecordValidator(RUN, key, membership).sign_value(record))


def progress(key: RSAPrivateKey, **values: Any) -> dict[str, Any]:
    content = {
        "peer_id": identity(key),
        "epoch": 10,
        "samples_accumulated": 8,
        "samples_per_second": 2.0,
        "time": get_dht_time(),
        "client_mode": False,
    }
    return content | values


def order() -> dict[str, Any]:
    return {"checkpoint": 10, "step": 99, "sha256": "a" * 64, "time": get_dht_time()}


class Forger(RecordValidatorBase):
    """Checks nothing, and seals what carries its key."""

    def __init__(self, key: RSAPrivateKey) -> None:
        self.key = key

    def validate(self, record: DHTRecord) -> bool:
        return True

    def sign_value(self, record: DHTRecord) -> bytes:
        if subkey_of(self.key) not in record.subkey:
            return bytes(record.value)
        fields = {"place": validator._place(record)}
        return envelope.seal("record", fields, record.value, self.key)
