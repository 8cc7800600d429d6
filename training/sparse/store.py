"""Places where a run's files are published: found by their SHA-256, whoever holds them.

Since a file's name is the sum of its content, it does not matter who hands it out: a folder on
this machine, an object store, a web server. Pointers give a file a readable name, such as the
list of a round; they are hints, and what they point to is checked like any other file.
"""

import hashlib
import re
from pathlib import Path
from typing import Protocol

from training.run import atomic

_NAME = re.compile(r"[a-z]+(/[0-9a-z-]+)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGEST_BYTES = 64


class StoreError(RuntimeError):
    """A file cannot be had; the message says why."""


class UnreachableError(StoreError):
    """A server does not answer, or not now; it may later."""


class RefusedError(StoreError):
    """The host does not take a file; the message says why."""


class Store(Protocol):
    """A place for files."""

    def put(self, content: bytes) -> str:
        """Keep a file, and give its SHA-256."""

    def get(self, sha256: str, most_bytes: int) -> bytes:
        """The file with that sum; raises StoreError if it is not there, too long, or another."""

    def point(self, name: str, sha256: str) -> None:
        """Give a file a name, in place of the one that had it."""

    def find(self, name: str) -> str | None:
        """The sum of the file with that name, None where there is none."""

    def names(self, folder: str) -> list[str]:
        """The names that begin with a folder's, in order."""


class FolderStore:
    """Files in a folder, which any web server can hand out as it is."""

    def __init__(self, path: Path) -> None:
        self._files, self._names = path / "files", path / "names"

    def put(self, content: bytes) -> str:
        """Keep a file under its SHA-256, written under a temporary name first."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self._files / sha256
        if not path.exists():
            atomic.write_bytes(path, content)
        return sha256

    def get(self, sha256: str, most_bytes: int) -> bytes:
        """The file with that sum.

        Raises:
            StoreError: it is not there, has more than `most_bytes` bytes, or is another.
        """
        content = _read(self._files / _checked(sha256), most_bytes)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"{sha256[:12]} is another file: its SHA-256 differs")
        return content

    def point(self, name: str, sha256: str) -> None:
        """Give a file a name, such as ``closings/000000012``."""
        atomic.write_bytes(self._names / checked_name(name), _checked(sha256).encode())

    def find(self, name: str) -> str | None:
        """The sum of the file with that name, None where there is none."""
        path = self._names / checked_name(name)
        if not path.is_file():
            return None
        found = _read(path, _DIGEST_BYTES).decode("ascii", "replace")
        return found if is_digest(found) else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in order."""
        found = (self._names / checked_name(folder)).glob("[!.]*")
        return sorted(f"{folder}/{path.name}" for path in found if path.is_file())

    def path_of(self, sha256: str) -> Path | None:
        """The place of the file with that sum, None where there is none."""
        path = self._files / sha256 if is_digest(sha256) else None
        return path if path is not None and path.is_file() else None

    def came_at(self, sha256: str) -> int:
        """The time at which the file with that sum was put here; 0 where it is not."""
        path = self.path_of(sha256)
        return path.stat().st_mtime_ns if path is not None else 0

    def forget(self, name: str) -> None:
        """Remove a name, and the file that it points to."""
        sha256 = self.find(name)
        (self._names / checked_name(name)).unlink(missing_ok=True)
        if sha256 is not None:
            (self._files / sha256).unlink(missing_ok=True)


def is_digest(value: object) -> bool:
    """True for a SHA-256 in hexadecimal."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def is_outage(error: BaseException | None) -> bool:
    """True if an error came of a server that does not answer."""
    while error is not None and not isinstance(error, UnreachableError):
        error = error.__cause__
    return error is not None


def _read(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise StoreError(f"{path.name[:12]} cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise StoreError(f"{path.name[:12]} has more than {most_bytes:,} bytes")
    return content


def _checked(sha256: str) -> str:
    if not is_digest(sha256):
        raise StoreError("not a SHA-256 in hexadecimal")
    return sha256


def checked_name(name: str) -> str:
    """A name as it is; raises StoreError where it is none."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} is no name of a file")
    return name
