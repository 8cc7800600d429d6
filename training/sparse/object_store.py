"""An object store for a run's large files: anyone's S3, R2, MinIO and so on.

The owner of the store has its keys, in the environment of the monitor alone, which puts the files
there. A volunteer gets an address for each file, from which it can download this one for a while.
What comes from the store is checked like any other file: if it is not there, too long or another,
the run's web host has it as well.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from calculator.errors import InputError
from training.access.client import in_words, printable
from training.sparse.presigned import Keys, presign
from training.sparse.store import FolderStore, StoreError, UnreachableError

PERMITTED_SECONDS = 900  # for one transfer
TIMEOUT = httpx.Timeout(15.0, connect=5.0)  # seconds; the first one without any byte
REST_SECONDS = 60.0  # of a store that does not work
_MOST_ANSWER = 2**16
_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_FOLDER = "stored"  # of the names of files that are in the store


T = TypeVar("T")


class Begun(bytearray):
    """The bytes of a file on its way, from before a connection broke.

    Attributes:
        came: bytes that have come in all, also where a server sent some again.
    """

    came = 0


def the_rest(begun: Begun | None) -> dict[str, str]:
    """The header that asks for what has not come yet of a file."""
    return {"Range": f"bytes={len(begun)}-"} if begun else {}


def read_body(
    answer: httpx.Response, most_bytes: int, what: str, begun: Begun | None = None
) -> bytes:
    """The body of an answer.

    Args:
        begun: what came before a connection broke; grows, and is then the whole.

    Raises:
        StoreError: it has more than `most_bytes` bytes.
    """
    content = Begun() if begun is None else begun
    if answer.status_code != httpx.codes.PARTIAL_CONTENT:
        content.clear()
    for piece in answer.iter_raw():
        content += piece
        content.came += len(piece)
        if len(content) > most_bytes:
            content.clear()
            raise StoreError(f"{what[:20]} has more than {most_bytes:,} bytes")
    return bytes(content)


def parse(content: bytes, kind: type[T], rule: str) -> T:
    """The value of a type that an answer in JSON describes.

    Raises:
        StoreError: with the rule, when it describes none.
    """
    try:
        return TypeAdapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise StoreError(rule) from error


class ObjectStore:
    """A store and its owner's keys: signs addresses for others, and uses them itself.

    Args:
        address: of the store and a folder in it, such as
            ``https://s3.example.org/bucket/our-run``; the files lie there under their SHA-256.
        clock: gives seconds since 1970.
    """

    def __init__(self, address: str, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        self.address = address.rstrip("/")
        self._keys, self._clock = keys, clock
        self._client = httpx.Client(timeout=TIMEOUT, follow_redirects=False)

    @classmethod
    def from_environment(cls, address: str, environment: Mapping[str, str]) -> Self:
        """A store whose keys are in the variables that all tools for such stores read.

        Raises:
            InputError: one of them is missing.
        """
        for name in _VARIABLES:
            if not environment.get(name):
                rule = "must be set in the monitor's environment: the run file names a store"
                raise InputError(name, "", rule)
        identity, secret = (environment[name] for name in _VARIABLES)
        region = environment.get("AWS_REGION") or "us-east-1"
        return cls(
            address, Keys(identity, secret, region, environment.get("AWS_SESSION_TOKEN", ""))
        )

    def address_of(self, sha256: str) -> str:
        """An address from which one file can be downloaded for a while."""
        return self._sign("GET", sha256)

    def put(self, content: bytes) -> str:
        """Upload a file and give its SHA-256.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it does not take the file.
        """
        sha256 = hashlib.sha256(content).hexdigest()
        self._send("PUT", sha256, content)
        return sha256

    def forget(self, sha256: str) -> None:
        """Remove a file; raises as `put` does."""
        self._send("DELETE", sha256)

    def check(self) -> None:
        """Upload, download and remove a small file.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it does something else than it must.
        """
        content = b"a file that a monitor tries its store with"
        sha256 = self.put(content)
        if self._send("GET", sha256) != content:
            raise StoreError("it gives another file than it was given")
        self.forget(sha256)

    def describe(self) -> str:
        """Try the store, and say in one line how it is; a run goes on without it."""
        try:
            self.check()
        except StoreError as error:
            return f"{self.address} does not work: {error}; volunteers use the web host"
        return f"{self.address} works"

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _send(self, method: str, sha256: str, content: bytes | None = None) -> bytes:
        try:
            with self._client.stream(method, self._sign(method, sha256), content=content) as answer:
                return read(answer, self.address, _MOST_ANSWER)
        except httpx.HTTPError as error:
            raise UnreachableError(in_words(error, self.address)) from error

    def _sign(self, method: str, sha256: str) -> str:
        address = f"{self.address}/{sha256}"
        return presign(method, address, self._keys, PERMITTED_SECONDS, self._clock())


class StoredFolder(FolderStore):
    """A folder whose large files are in an object store as well, as far as that works.

    Args:
        folder: as of `FolderStore`. objects: None: there is no store.
        say: told when the store does not work.
    """

    def __init__(
        self,
        folder: Path,
        objects: ObjectStore | None = None,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        super().__init__(folder)
        self.objects, self._say = objects, say
        self._rests_until = -math.inf

    def keep(self, sha256: str) -> None:
        """Put a file of the folder into the store, unless it is there or the store rests."""
        path = self.path_of(sha256)
        if self.objects is None or path is None or self._is_stored(sha256):
            return
        if time.monotonic() < self._rests_until:
            return
        try:
            self.objects.put(path.read_bytes())
        except StoreError as error:
            self._say(f"the store does not take a file ({error}): handing it out from here")
            self._rests_until = time.monotonic() + REST_SECONDS
        else:
            self.point(f"{_FOLDER}/{sha256}", sha256)

    def address_of(self, sha256: str) -> str | None:
        """An address in the store from which a file can be had; None where it is not there."""
        if self.objects is None or not self._is_stored(sha256):
            return None
        return self.objects.address_of(sha256)

    def forget(self, name: str) -> None:
        """Remove a name, and its file here and in the store.

        What a store that does not work keeps is left to its own rules.
        """
        sha256 = self.find(name)
        super().forget(name)
        if sha256 is None or not self._is_stored(sha256):
            return
        super().forget(f"{_FOLDER}/{sha256}")
        if self.objects is not None:
            with suppress(StoreError):
                self.objects.forget(sha256)

    def _is_stored(self, sha256: str) -> bool:
        return self.find(f"{_FOLDER}/{sha256}") is not None


def read(
    answer: httpx.Response, address: str, most_bytes: int, begun: Begun | None = None
) -> bytes:
    """The content of a store's answer; `begun` as of `read_body`.

    Args:
        address: of the store, shown in errors.

    Raises:
        UnreachableError: the store cannot answer now.
        StoreError: it has more than `most_bytes` bytes, or the store refuses, in its own word.
    """
    if answer.is_server_error:
        raise UnreachableError(f"{address} answers with status {answer.status_code}")
    if answer.is_success:
        return read_body(answer, most_bytes, "a file in the store", begun)
    content = read_body(answer, _MOST_ANSWER, "the store's answer").decode("utf-8", "replace")
    _, _, rest = content.partition("<Code>")  # its word stands in XML
    code, found, _ = rest.partition("</Code>")
    word = f" ({printable(code)})" if found else ""
    raise StoreError(f"{address} answers with status {answer.status_code}{word}")
