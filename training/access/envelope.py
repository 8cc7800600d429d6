r"""Signed files: a short header in JSON, a signature over it, and a body of bytes.

    TTS1 | header bytes, 2 | signature bytes, 2 | header | signature | body

The two lengths are little-endian. The header says what the file is, whose it is (the public key)
and the SHA-256 of the body, so that the signature covers all of it. A file of one kind is never
valid as another. A record of the hash table is one too (`records.validator`).
"""

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Any

from training.access.grants import GrantError, peer_id_of
from training.access.signatures import PeerKey, is_signed

HEADER_BYTES, SIGNATURE_BYTES = 2**14, 2**10  # the most of each
_MAGIC = b"TTS1"
_PREFIX = struct.Struct("<4sHH")
_PURPOSE = b"training-transformers-together sparse 1 "
OVERHEAD_BYTES = _PREFIX.size + HEADER_BYTES + SIGNATURE_BYTES  # of a file beside its body


class FileError(ValueError):
    """A file that is not what it should be, or not taken; the message says why."""


@dataclass(frozen=True)
class SignedFile:
    """A file whose signature holds.

    Attributes:
        fields: of the header, without kind, key and sum. signer: identity in base 58.
    """

    fields: dict[str, Any]
    signer: str
    body: bytes


def seal(kind: str, fields: dict[str, Any], body: bytes, key: PeerKey) -> bytes:
    """Sign a file with a peer's key."""
    header = _dump(
        {
            **fields,
            "kind": kind,
            "public_key": key.get_public_key().to_bytes().decode(),
            "body": hashlib.sha256(body).hexdigest(),
        }
    )
    signature = key.sign(_PURPOSE + header)
    if len(header) > HEADER_BYTES or len(signature) > SIGNATURE_BYTES:
        raise FileError(f"a header of {len(header)} bytes, a signature of {len(signature)}")
    return _PREFIX.pack(_MAGIC, len(header), len(signature)) + header + signature + body


def open_file(kind: str, content: bytes, most_bytes: int) -> SignedFile:
    """Check a file of a kind: its form, its sum, its signature. Its signer may be anyone.

    Args:
        most_bytes: that its body may have.

    Raises:
        FileError: with the reason, when it does not hold.
    """
    if len(content) > most_bytes + OVERHEAD_BYTES:
        raise FileError(f"{len(content):,} bytes are too many")
    header, signature, body = _split(content)
    fields = _load(header)
    claimed, public_key, digest = (fields.pop(n, None) for n in ("kind", "public_key", "body"))
    if claimed != kind:
        raise FileError(f"not a {kind}")
    if not isinstance(public_key, str):
        raise FileError("its signer's key is missing")
    try:
        signer = peer_id_of(public_key)
    except GrantError as error:
        raise FileError(str(error)) from error
    if not is_signed(_PURPOSE + header, signature, public_key):
        raise FileError("its signer did not sign it")
    if len(body) > most_bytes or digest != hashlib.sha256(body).hexdigest():
        raise FileError("its body is not the one that was signed")
    return SignedFile(fields, signer, body)


def _split(content: bytes) -> tuple[bytes, bytes, bytes]:
    if len(content) < _PREFIX.size:
        raise FileError("too short")
    magic, header_size, signature_size = _PREFIX.unpack_from(content)
    if magic != _MAGIC:
        raise FileError("it does not begin as such a file does")
    if header_size > HEADER_BYTES or signature_size > SIGNATURE_BYTES:
        raise FileError("its header or signature is too long")
    middle = _PREFIX.size + header_size
    end = middle + signature_size
    if len(content) < end:
        raise FileError("too short for its header")
    return content[_PREFIX.size : middle], content[middle:end], content[end:]


def _dump(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _load(header: bytes) -> dict[str, Any]:
    """A header, of which there is one form alone."""
    try:
        fields = json.loads(header)
        is_exact = isinstance(fields, dict) and _dump(fields) == header
    except (ValueError, RecursionError) as error:
        raise FileError("its header is no JSON") from error
    if not is_exact:
        raise FileError("its header is not written as it must be")
    return dict(fields)
