"""The proof that whoever asks for access holds the peer's private key.

Without it one could have somebody else's key entered under one's own account, and have it
banned. The proof is bound to the token that comes with it, so that it is of no use to others.
"""

import base64
import binascii
import hashlib
import json
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from training.access.tokens import Token

_PURPOSE = "training-transformers-together proof 1"
# as hivemind's RSAPrivateKey signs
_PADDING = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)


class PublicKey(Protocol):
    """The public half of a peer's key."""

    def to_bytes(self) -> bytes:
        """The key as ``ssh-rsa AAAA...``."""
        ...


class PeerKey(Protocol):
    """A peer's key, such as `hivemind.utils.crypto.RSAPrivateKey`."""

    def sign(self, data: bytes) -> bytes:
        """Sign, in base 64."""
        ...

    def get_public_key(self) -> PublicKey:
        """The public half."""
        ...


def prove(key: PeerKey, run: str, token: Token) -> str:
    """Sign that this peer asks for access to a run with this token; base 64."""
    return key.sign(_message(run, token)).decode()


def is_proved(proof: str, peer_public_key: str, run: str, token: Token) -> bool:
    """True if the holder of a key asked for access to a run with this token."""
    try:
        key = serialization.load_ssh_public_key(peer_public_key.encode())
        signature = base64.b64decode(proof, validate=True)
        if not isinstance(key, RSAPublicKey):
            return False
        key.verify(signature, _message(run, token), _PADDING, hashes.SHA256())
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def _message(run: str, token: Token) -> bytes:
    digest = hashlib.sha256(token.reveal().encode()).hexdigest()
    return json.dumps([_PURPOSE, run, digest]).encode()
