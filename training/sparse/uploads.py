"""The host's side of a run's object store: who may upload what, and which files are there.

A volunteer sends the signed head of its payload, and gets the address for this one file: of the
length and SHA-256 that it names, for the open round. It has one in a round. The host then takes
the payload from the store and checks it as if it had been sent here. It keeps a copy, so that a
round needs the store for nothing but speed.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass

from training.sparse import payload
from training.sparse.closing import MOST_PAYLOADS
from training.sparse.host import Host, NotTakenError
from training.sparse.object_store import ObjectStore, Permission
from training.sparse.store import FolderStore, StoreError

MOST_TRIES = 4  # of a payload: each one costs the host a download
_FOLDER = "stored"  # of the names of files that are in the store


class StoredFolder(FolderStore):
    """A folder that knows which of its files are in an object store as well.

    Args:
        folder: as of `FolderStore`. objects: removed from when a file is forgotten.
    """

    objects: ObjectStore | None = None

    def note_stored(self, sha256: str) -> None:
        """Note that a file of the folder is in the store."""
        self.point(f"{_FOLDER}/{sha256}", sha256)

    def is_stored(self, sha256: str) -> bool:
        """True if a file was put into the store."""
        return self.find(f"{_FOLDER}/{sha256}") is not None

    def forget(self, name: str) -> None:
        """Remove a name, and its file here and in the store.

        What a store that does not work keeps is left to its own rules.
        """
        sha256 = self.find(name)
        super().forget(name)
        if sha256 is None or not self.is_stored(sha256):
            return
        super().forget(f"{_FOLDER}/{sha256}")
        if self.objects is not None:
            with suppress(StoreError):
                self.objects.forget(sha256)


@dataclass
class _Asked:
    """A payload that may be uploaded, and how often it was announced."""

    sha256: str
    tries: int = 0


class Uploads:
    """Uploads to a run's object store, for any thread.

    Args:
        folder: of the host.
    """

    def __init__(self, host: Host, folder: StoredFolder, objects: ObjectStore) -> None:
        self._host, self._folder, self._objects = host, folder, objects
        self._most_bytes = payload.most_bytes(host.swarm.layout)
        self._lock = threading.Lock()
        self._number = -1
        self._asked: dict[str, _Asked] = {}  # in this round, by peer

    def permit(self, sha256: str, size: int, head: bytes, token: bytes) -> Permission:
        """Permit a volunteer to upload its payload.

        Raises:
            NotTakenError: with the reason.
        """
        if not 0 < size <= self._most_bytes:
            raise NotTakenError(f"{size:,} bytes are too many")
        number, peer = self._host.expect_payload(head, sha256, token)
        with self._lock:
            if number != self._number:
                self._number, self._asked = number, {}
            if peer not in self._asked and len(self._asked) >= MOST_PAYLOADS:
                raise NotTakenError("the round is full")
            if self._asked.setdefault(peer, _Asked(sha256)).sha256 != sha256:
                raise NotTakenError("its peer may upload another one in this round")
        return self._objects.permit_upload(sha256, size)

    def take(self, sha256: str, token: bytes) -> None:
        """Take a payload that a volunteer has put into the store.

        Raises:
            NotTakenError: with the reason.
            StoreError: it cannot be had.
        """
        with self._lock:
            asked = next((one for one in self._asked.values() if one.sha256 == sha256), None)
            if asked is None or asked.tries >= MOST_TRIES:
                raise NotTakenError("this file is not expected in this round, or not any more")
            asked.tries += 1
        content = self._objects.get(sha256, self._most_bytes)
        self._host.take_payload(content, token)
        self._folder.note_stored(sha256)

    def keep(self, sha256: str, most_bytes: int) -> None:
        """Put a file of the folder into the store.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it does not take the file.
        """
        if not self._folder.is_stored(sha256):
            self._objects.put(self._folder.get(sha256, most_bytes))
            self._folder.note_stored(sha256)

    def address_of(self, sha256: str) -> str | None:
        """An address in the store from which a file can be had; None where it is not there."""
        return self._objects.address_of(sha256) if self._folder.is_stored(sha256) else None
