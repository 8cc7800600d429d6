"""A record's value as it travels: what it says, whose it is, by what right, and the signature.

    payload [owner:ssh-rsa AAAA...] [access:...] [signature:...]

The owner stands there where the subkey is the owner's identity and not its key; the access, the
owner's grant, where the run has an authority.
"""

import base64
from dataclasses import astuple, dataclass, replace
from functools import lru_cache

from hivemind.dht.validation import DHTRecord
from hivemind.utils import MSGPackSerializer
from hivemind.utils.crypto import RSAPrivateKey, RSAPublicKey

from training.records.owners import public_key_of, tag_of


@dataclass(frozen=True)
class Envelope:
    """A value that was opened, not checked.

    Attributes:
        payload: serialised. owner: a public key, None where the subkey says it.
        access: the owner's grant, serialised. signed: what the signature covers.
    """

    payload: bytes
    owner: str | None
    access: bytes | None
    signed: bytes
    signature: bytes


def seal(record: DHTRecord, key: RSAPrivateKey, with_owner: bool, access: bytes | None) -> bytes:
    """The value of our own record as it travels."""
    value: bytes = record.value
    if with_owner:
        value += tag_of(key.get_public_key().to_bytes().decode())
    if access is not None:
        value += b"[access:" + base64.b64encode(access) + b"]"
    signature: bytes = key.sign(_message(record, value))
    return value + b"[signature:" + signature + b"]"


def open_value(value: bytes, with_owner: bool, with_access: bool) -> Envelope:
    """Take a value apart.

    Raises:
        ValueError: when a part is missing.
    """
    signed, signature = _split(value, b"[signature:")
    rest, access, owner = signed, None, None
    if with_access:
        rest, text = _split(rest, b"[access:")
        access = base64.b64decode(text, validate=True)
    if with_owner:
        rest, text = _split(rest, b"[owner:")
        owner = public_key_of(b"[owner:" + text + b"]")
    return Envelope(rest, owner, access, signed, signature)


def is_signed(record: DHTRecord, envelope: Envelope, public_key: str) -> bool:
    """True if the owner of a public key signed a record."""
    message = _message(record, envelope.signed)
    return bool(_read(public_key).verify(message, envelope.signature))


def _split(value: bytes, opening: bytes) -> tuple[bytes, bytes]:
    start = value.rfind(opening)
    if start < 0 or not value.endswith(b"]"):
        raise ValueError(f"no {opening.decode()[1:-1]}")
    return value[:start], value[start + len(opening) : -1]


def _message(record: DHTRecord, value: bytes) -> bytes:
    message: bytes = MSGPackSerializer.dumps(astuple(replace(record, value=value)))
    return message


@lru_cache(maxsize=4096)
def _read(public_key: str) -> RSAPublicKey:
    return RSAPublicKey.from_bytes(public_key.encode())
