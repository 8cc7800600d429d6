"""The authority's signing key: in a file that only its owner can read."""

import contextlib
import os
import time
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from calculator.errors import InputError
from training.access import grants
from training.access.client import Admission
from training.run.runfile import RunFile, default_folder

FILE_NAME = "authority.key"
# of the monitor's access
USERNAME = "(monitor)"  # no name that the Hub would give to a user
LIFETIME = 600


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
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
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


def find_authority_folder(run: RunFile, chosen: Path | None) -> Path | None:
    """The folder of the run's authority if it is on this machine, for the monitor.

    Raises:
        InputError: when a folder is named and the run file has no authority.
    """
    if chosen is not None:
        if not run.authority:
            rule = "must not be given where the run file names no authority"
            raise InputError("authority_folder", chosen, rule)
        return chosen
    usual = default_folder(run, "authority")
    return usual if run.authority and (usual / FILE_NAME).exists() else None


def sign_own(folder: Path, run: str, peer_public_key: str) -> Admission:
    """Sign a grant for a peer of the organisers with the key in the authority's folder.

    Raises:
        InputError: when the key cannot be used.
    """
    key = read_key(folder)
    expires = int(time.time()) + LIFETIME
    grant = grants.issue(key, run, USERNAME, peer_public_key, expires)
    return Admission(grant, grants.public_key_text(key))
