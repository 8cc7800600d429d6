"""The proof that whoever asks for access holds the peer's private key.

Without it one could have somebody else's key entered under one's own account, and have it
banned. The proof is bound to the token that comes with it, so that it is of no use to others.
"""

import hashlib
import json

from training.access.signatures import PeerKey, is_signed
from training.access.tokens import Token

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
