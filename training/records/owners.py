"""Whose a record in the hash table is: its public key, its identity, its short public name."""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from hivemind.p2p import PeerID

from calculator.errors import InputError
from training.access.grants import peer_id_of as peer_id_of_key
from training.run import atomic

T = TypeVar("T")
logger = logging.getLogger(__name__)

# hivemind's form of a subkey that only the owner of the key in it may write.
_TAG = re.compile(rb"\[owner:(ssh-rsa [A-Za-z0-9+/]+={0,2})\]")


def tag_of(public_key: str) -> bytes:
    """The subkey of a peer's own records: ``[owner:ssh-rsa AAAA...]``."""
    return f"[owner:{public_key}]".encode()


def public_key_of(subkey: object) -> str:
    """The public key in a subkey that is exactly one owner's tag.

    Raises:
        ValueError: when it is anything else.
    """
    found = _TAG.fullmatch(subkey) if isinstance(subkey, bytes) else None
    if found is None:
        raise ValueError("a subkey that is not one owner's tag")
    return found[1].decode()


@lru_cache(maxsize=4096)
def peer_id_of(subkey: bytes) -> str:
    """The identity of a subkey's owner, in base 58: both are made of the same public key.

    Raises:
        ValueError: when the subkey is not exactly one owner's tag.
    """
    return peer_id_of_key(public_key_of(subkey))


@lru_cache(maxsize=4096)
def identity_of(peer_id: str) -> bytes:
    """An identity in base 58 as the bytes that hivemind puts into records."""
    identity: bytes = PeerID.from_base58(peer_id).to_bytes()
    return identity


def contributor_id(subkey: bytes) -> str:
    """A short public name for the owner of a subkey: `contributor_of` its identity."""
    return contributor_of(peer_id_of(subkey))


def contributor_of(peer_id: str) -> str:
    """A short public name for a peer: the first 12 digits of the SHA-256 of its identity."""
    return hashlib.sha256(peer_id.encode()).hexdigest()[:12]


def entries(found: Any, parse: Callable[[Any], T]) -> dict[str, T]:
    """The owners' entries under one key, by their identities in base 58; never raises.

    Args:
        found: what the hash table gave: a value with the owners' records, or nothing.
        parse: reads one owner's value. What it cannot read is left out, as are goodbyes (None).
    """
    records = getattr(found, "value", None)
    read: dict[str, T] = {}
    for subkey, entry in records.items() if isinstance(records, Mapping) else ():
        try:
            if entry.value is not None:
                read[peer_id_of(subkey)] = parse(entry.value)
        except Exception as error:  # whatever others may have sent
            logger.info("a record is left out: %r", error)
    return read


FILE_NAME = "bans.json"


class BanList:
    """The list in a folder, for any process; read again whenever the file changes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._seen: tuple[int, int] | None = None
        self._ids: frozenset[str] = frozenset()

    def ids(self) -> frozenset[str]:
        """Public names of those who are banned, as of `contributor_of`.

        Raises:
            InputError: the file holds something else.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return frozenset()
        if self._seen != (found.st_mtime_ns, found.st_ino):
            ids = atomic.read_json(self.path)
            if not (isinstance(ids, list) and all(isinstance(one, str) for one in ids)):
                raise InputError("file", self.path, "must hold a list of contributors")
            self._ids, self._seen = frozenset(ids), (found.st_mtime_ns, found.st_ino)
        return self._ids

    def write(self, ids: Iterable[str]) -> None:
        """Replace the list."""
        atomic.write_json(self.path, sorted(set(ids)))

    def is_banned(self, peer_id: str) -> bool:
        """True for the identity of a peer that is banned."""
        ids = self.ids()
        return bool(ids) and contributor_of(peer_id) in ids
