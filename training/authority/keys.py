"""The authority's signing key: in a file that only its owner can read."""

import contextlib
import os
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from calculator.errors import InputError

FILE_NAME = "authority.key"


def read_key(folder: Path) -> Ed25519PrivateKey:
    """Read the key in the authority's folder; make one where there is none.

    Raises:
        InputError: when others may read the file, or it holds something else.
    """
    path = folder / FILE_NAME
    if not path.exists():
        _make(path)
    if path.stat().st_mode & 0o077:
        raise InputError("key", path, "must be readable for its owner only: chmod 600")
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("key", path, "must be an Ed25519 key in PEM")
    return key


def _make(path: Path) -> None:
    """Write a new key, unless another process just did."""
    content = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # fails where there is one: two authorities agree on a key
    finally:
        temporary.unlink()
