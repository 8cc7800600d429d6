"""Grants: who may take part in a run, with which key, until when; signed by the run's authority.

A grant is no secret. It names the public key of one peer, and is of use only to whoever holds
the private key to it: each call in the run's network is signed with that key.
"""

import base64
import binascii
import hashlib
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

MAX_BYTES = 4096  # a grant is about 700 bytes; whatever is longer is something else
SMALLEST_KEY = 2048  # bits of a peer's RSA key
_PURPOSE = "training-transformers-together access 1"  # a signature holds for nothing else
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class GrantError(ValueError):
    """An invalid grant; the message says why."""


@dataclass(frozen=True)
class Grant:
    """Leave to take part in a run.

    Attributes:
        run: the run's name.
        username: name of the Hugging Face account that asked for it.
        peer_public_key: the peer's RSA key, as ``ssh-rsa AAAA...``.
        expires: seconds since 1970 at which it ends.
        signature: the authority's, over all of the above.
    """

    run: str
    username: str
    peer_public_key: str
    expires: int
    signature: bytes

    @property
    def peer_id(self) -> str:
        """The identity of the peer in the network, in base 58."""
        return peer_id_of(self.peer_public_key)

    @property
    def expires_at(self) -> str:
        """The end as ISO 8601 in UTC."""
        return datetime.fromtimestamp(self.expires, UTC).isoformat().replace("+00:00", "Z")

    def seconds_left(self, now: float | None = None) -> float:
        """Seconds until it ends, negative afterwards."""
        return self.expires - (time.time() if now is None else now)

    def to_bytes(self) -> bytes:
        """The grant as it travels; `parse` reads it back."""
        values = {
            "run": self.run,
            "username": self.username,
            "peer_public_key": self.peer_public_key,
            "expires": self.expires,
            "signature": base64.b64encode(self.signature).decode(),
        }
        return json.dumps(values, separators=(",", ":")).encode()


def issue(
    key: Ed25519PrivateKey, run: str, username: str, peer_public_key: str, expires: int
) -> Grant:
    """Sign a grant with the authority's key."""
    message = _message(run, username, peer_public_key, expires)
    return Grant(run, username, peer_public_key, expires, key.sign(message))


def parse(token: bytes) -> Grant:
    """Read a grant without checking its signature.

    Raises:
        GrantError: when it is not shaped like one.
    """
    if len(token) > MAX_BYTES:
        raise GrantError(f"longer than {MAX_BYTES} bytes")
    try:
        values = json.loads(token)
        signature = base64.b64decode(values.pop("signature"), validate=True)
        grant = Grant(**values, signature=signature)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise GrantError("not shaped like a grant") from error
    texts = (grant.run, grant.username, grant.peer_public_key)
    if not all(isinstance(text, str) for text in texts) or type(grant.expires) is not int:
        raise GrantError("not shaped like a grant")
    return grant


def verify(token: bytes, authority_key: str, run: str, peer_id: str) -> Grant:
    """Read a grant and check that it holds: for this run and this peer, now.

    Whoever calls this must know from elsewhere that the other end is `peer_id`; libp2p proves
    the identity of both ends of a connection.

    Args:
        authority_key: the authority's public key, as `public_key_text` writes it.
        peer_id: the identity of whoever showed it, in base 58.

    Raises:
        GrantError: with the reason, when it does not hold.
    """
    grant = parse(token)
    check(grant, authority_key, run)
    if grant.peer_id != peer_id:
        raise GrantError("made for another peer's key")
    return grant


def check(grant: Grant, authority_key: str, run: str, now: float | None = None) -> None:
    """Check a grant's run, signature and time; `verify` checks the peer as well.

    Raises:
        GrantError: with the reason, when it does not hold.
    """
    if grant.run != run:
        raise GrantError("made for another run")
    message = _message(run, grant.username, grant.peer_public_key, grant.expires)
    if not _is_signed(authority_key, message, grant.signature):
        raise GrantError("not signed by the run's authority")
    if grant.seconds_left(now) <= 0:
        raise GrantError(f"expired at {grant.expires_at}")


def public_key_text(key: Ed25519PrivateKey) -> str:
    """The public key to an authority's key: 32 bytes in base 64."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


@lru_cache(maxsize=1024)
def peer_id_of(peer_public_key: str) -> str:
    """The identity that libp2p derives from an RSA key, in base 58.

    It is the multihash of the SHA-256 of the key in DER, wrapped in a protocol buffer. Source:
    https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md

    Raises:
        GrantError: when it is no RSA key of at least `SMALLEST_KEY` bits in OpenSSH's form.
    """
    der = _read_key(peer_public_key).public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    wrapped = b"\x08\x00\x12" + _variable_length(len(der)) + der
    return _base58(b"\x12\x20" + hashlib.sha256(wrapped).digest())


def _read_key(text: str) -> RSAPublicKey:
    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise GrantError("the peer's key must be an RSA key as ssh-rsa AAAA...") from error
    if not isinstance(key, RSAPublicKey) or key.key_size < SMALLEST_KEY:
        raise GrantError(f"the peer's key must be an RSA key of at least {SMALLEST_KEY} bits")
    written = key.public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    ).decode()
    if written != text:
        raise GrantError("the peer's key must be written as ssh-rsa AAAA... and no more")
    return key


@lru_cache(maxsize=4096)
def _is_signed(authority_key: str, message: bytes, signature: bytes) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(authority_key, validate=True))
        key.verify(signature, message)
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def _message(run: str, username: str, peer_public_key: str, expires: int) -> bytes:
    return json.dumps([_PURPOSE, run, username, peer_public_key, expires]).encode()


def _variable_length(number: int) -> bytes:
    """A protocol buffer's integer: seven bits a byte, the lowest first."""
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _base58(content: bytes) -> str:
    number, digits = int.from_bytes(content), ""
    while number:
        number, digit = divmod(number, 58)
        digits = _BASE58[digit] + digits
    zeros = len(content) - len(content.lstrip(b"\0"))
    return _BASE58[0] * zeros + digits
