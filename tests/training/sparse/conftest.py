"""Keys of peers, made once."""

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from training.access.grants import peer_id_of


@pytest.fixture(scope="session")
def keys() -> list[RSAPrivateKey]:
    """Four keys, in the order of their peers' identities."""
    return sorted((RSAPrivateKey() for _ in range(4)), key=identity)


def identity(key: RSAPrivateKey) -> str:
    return peer_id_of(key.get_public_key().to_bytes().decode())


@pytest.fixture(scope="session")
def identities(keys: list[RSAPrivateKey]) -> list[str]:
    return [identity(key) for key in keys]
