"""Signatures of a peer's RSA key, as hivemind's keys make them."""

import base64
import binascii
import hashlib
import json
from typing import Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from training.access.tokens import Token

# as hivemind's RSAPrivateKey signs
_PADDING = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)


class PublicKey(Protocol):
    """The public half of a peer's key."""

    def to_bytes(self) -> bytes:
        """The key as ``ssh-rsa AAAA...``."""


class PeerKey(Protocol):
    """A peer's key, such as `hivemind.utils.crypto.RSAPrivateKey`."""

    def sign(self, data: bytes) -> bytes:
        """Sign, in base 64."""

    def get_public_key(self) -> PublicKey:
        """The public half."""


def is_signed(message: bytes, signature: bytes, peer_public_key: str) -> bool:
    """True if the holder of a key signed a message; a signature is base 64 in its one form."""
    try:
        plain = base64.b64decode(signature, validate=True)
        key = serialization.load_ssh_public_key(peer_public_key.encode())
        if not isinstance(key, RSAPublicKey) or base64.b64encode(plain) != signature:
            return False
        key.verify(plain, message, _PADDING, hashes.SHA256())
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, binascii.Error):
        return False
    return True


_PURPOSE = "training-transformers-together proof 1"


def prove(key: PeerKey, run: str, token: Token) -> str:
    """Sign that this peer asks for access to a run with this token; base 64."""
    return key.sign(_message(run, token)).decode()


def is_proved(proof: str, peer_public_key: str, run: str, token: Token) -> bool:
    """True if the holder of a key asked for access to a run with this token."""
    return is_signed(_message(run, token), proof.encode("utf-8", "replace"), peer_public_key)


def _message(run: str, token: Token) -> bytes:
    digest = hashlib.sha256(token.reveal().encode()).hexdigest()
    return json.dumps([_PURPOSE, run, digest]).encode()
