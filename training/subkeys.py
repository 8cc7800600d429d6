"""Whose a record in the DHT is: the subkey carries the public key that it is signed with."""

import hashlib
from functools import lru_cache

from hivemind.dht.crypto import RSASignatureValidator

from training.access.grants import peer_id_of as peer_id_of_key


@lru_cache(maxsize=4096)
def peer_id_of(subkey: bytes) -> str:
    """The identity of whoever owns a subkey, in base 58: both are made of the same public key.

    Raises:
        ValueError: when the subkey holds no key.
    """
    found = RSASignatureValidator._PUBLIC_KEY_RE.findall(subkey)
    if len(found) != 1:
        raise ValueError(f"{len(found)} public keys in {subkey[:40]!r}")
    return peer_id_of_key(found[0].decode())


def contributor_id(subkey: bytes) -> str:
    """A short public name for the owner of a subkey: `contributor_of` its identity."""
    return contributor_of(peer_id_of(subkey))


def contributor_of(peer_id: str) -> str:
    """A short public name for a peer: the first 12 digits of the SHA-256 of its identity."""
    return hashlib.sha256(peer_id.encode()).hexdigest()[:12]
