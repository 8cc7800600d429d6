"""The store of a volunteer: its run's web host, asked over http(s)."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from training.access.client import in_words, printable
from training.access.grants import GrantError
from training.access.membership import Membership
from training.sparse import catching_up, object_store
from training.sparse.object_store import REST_SECONDS, Begun
from training.sparse.store import (
    RefusedError,
    StoreError,
    UnreachableError,
    checked_name,
    is_digest,
)
from training.sparse.web import FROM_HOST, GRANT_HEADER

ANSWER_SECONDS = 60.0  # without any byte
MOST_TEXT = 2**20  # bytes of an answer that is no file
_DIGEST_BYTES = 64


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host's answer about its run.

    Attributes:
        round: number of the open one.
        peers: volunteers that it hears.
        time: on its clock, in seconds since 1970.
    """

    run: str
    round: int
    finished: bool
    peers: int
    time: float


class WebStore:
    """Files of a run's web host.

    Payloads and reports are uploaded to it; it names them and closes the rounds itself. Where the
    run has an object store, payloads and checkpoints come from that, as long as it works.

    Args:
        address: of the host. membership: our access, where the run has an authority.
        objects: address of the run's object store: the host sends us nowhere else; empty: it has
            none.
        say: told when the store does not work, and when it works again.
        clock: gives seconds.

    Attributes:
        bytes_sent, bytes_received: of files.
    """

    def __init__(
        self,
        address: str,
        membership: Membership | None = None,
        objects: str = "",
        say: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address.rstrip("/")
        self.bytes_received = self.bytes_sent = 0
        self._membership, self._objects = membership, objects.rstrip("/")
        self._say, self._clock = say, clock
        self._rests_until = -math.inf  # the object store
        self._kept: dict[str, bytes] = {}  # our newest upload
        self._begun = ("", Begun())  # the sum of a file on its way, and what has come of it
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=10.0)
        self._client = httpx.Client(timeout=timeout, follow_redirects=False)

    def put(self, content: bytes) -> str:
        """Upload a payload, and give its SHA-256.

        Raises:
            UnreachableError: the host does not answer. RefusedError: it does not take it.
        """
        sha256 = hashlib.sha256(content).hexdigest()
        self._kept = {sha256: content}
        self._upload("payloads", content)
        return sha256

    def report(self, content: bytes) -> None:
        """Upload a signed report; raises as `put` does."""
        self._upload("reports", content)

    def get(self, sha256: str, most_bytes: int) -> bytes:
        """The file with that sum.

        Raises:
            UnreachableError: the host does not answer.
            StoreError: it is not there, has more than `most_bytes` bytes, or is another.
        """
        if sha256 in self._kept:
            return self._kept[sha256]
        if self._begun[0] != sha256:
            self._begun = sha256, Begun()
        begun = self._begun[1]
        before = begun.came
        try:
            works = self._objects and self._clock() >= self._rests_until
            content = self._get_from_objects(sha256, most_bytes) if works else None
            if content is None:
                content = self._ask(f"files/{sha256}?{FROM_HOST}", most_bytes, begun)
        finally:
            self.bytes_received += begun.came - before
        self._begun = "", Begun()
        if content is None:
            raise StoreError(f"{sha256[:12]} is not there")
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"{sha256[:12]} is another file: its SHA-256 differs")
        return content

    def point(self, name: str, sha256: str) -> None:
        """Nothing is to be done: the host names what it takes."""

    def find(self, name: str) -> str | None:
        """The sum of the file with that name, None where there is none."""
        content = self._ask(f"names/{checked_name(name)}", _DIGEST_BYTES)
        found = None if content is None else content.decode("ascii", "replace")
        return found if is_digest(found) else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in order; of checkpoints alone.

        Raises:
            StoreError: the host's answer is no list of names.
        """
        if folder != catching_up.FOLDER:
            raise StoreError(f"the host does not list {folder}")
        content = self._ask(f"names/{folder}", MOST_TEXT)
        found = object_store.parse(
            content or b"[]", list[str], "the host's answer is no list of names"
        )
        return sorted(checked_name(name) for name in found)

    def describe(self) -> HostStatus:
        """The host's answer about its run.

        Raises:
            UnreachableError: the host does not answer. StoreError: it says something else.
        """
        content = self._ask("round", MOST_TEXT)
        return object_store.parse(content or b"", HostStatus, f"{self.address} is no host of a run")

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _get_from_objects(self, sha256: str, most_bytes: int) -> bytes | None:
        """The file from the object store, or from a host that has it alone; None where it fails.

        Raises:
            UnreachableError: the host does not answer. StoreError: its file is too long.
        """
        path, begun = f"files/{sha256}", self._begun[1]

        def read(answer: httpx.Response) -> bytes | str | None:
            if answer.has_redirect_location:
                return answer.headers["Location"]
            return (
                object_store.read_body(answer, most_bytes, path, begun)
                if answer.is_success
                else None
            )

        found: bytes | str | None = self._send(
            "GET", path, None, read, object_store.the_rest(begun)
        )
        if not isinstance(found, str):
            return found
        try:
            return self._download(found, sha256, most_bytes, begun)
        except UnreachableError as error:
            self._say(f"the run's store does not work ({error}): using the host for a while")
            self._rests_until = self._clock() + REST_SECONDS
        except StoreError as error:
            begun.clear()
            self._say(f"the run's store: {error}; taking the file from the host")
        return None

    def _download(self, address: str, sha256: str, most_bytes: int, begun: Begun) -> bytes:
        """A file from the object store, at an address that the host gave; raises as `get` does."""
        store = self._objects
        if not address.startswith(f"{store}/"):
            raise StoreError(f"an address that is not in {store}")
        headers = {"Accept-Encoding": "identity", **object_store.the_rest(begun)}
        try:
            with self._client.stream(
                "GET", address, headers=headers, timeout=object_store.TIMEOUT
            ) as answer:
                content = object_store.read(answer, store, most_bytes, begun)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(in_words(error, store)) from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"{sha256[:12]} is another file in the store: its SHA-256 differs")
        return content

    def _ask(self, path: str, most_bytes: int, begun: Begun | None = None) -> bytes | None:
        """The content at an address of the host, None where there is none."""

        def read(answer: httpx.Response) -> bytes | None:
            if answer.status_code == httpx.codes.NOT_FOUND:
                return None
            if not answer.is_success:
                if begun is not None:
                    begun.clear()  # the server may know no such rest
                raise UnreachableError(f"{self.address} answers with status {answer.status_code}")
            return object_store.read_body(answer, most_bytes, path, begun)

        content: bytes | None = self._send("GET", path, None, read, object_store.the_rest(begun))
        return content

    def _upload(self, path: str, content: bytes) -> None:
        self._send("PUT", path, content, lambda answer: self._check_upload(answer, path))
        self.bytes_sent += len(content)

    def _check_upload(self, answer: httpx.Response, path: str) -> None:
        """See that the host took an upload.

        Raises:
            UnreachableError: it cannot take any now. RefusedError: it does not take this one.
        """
        if answer.is_success:
            return
        if not answer.is_client_error:
            raise UnreachableError(f"{self.address} answers with status {answer.status_code}")
        content = object_store.read_body(answer, MOST_TEXT, path)
        found = object_store.parse(content, dict[str, str], "the host's answer is no refusal")
        raise RefusedError(printable(found.get("error", f"status {answer.status_code}")))

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        read: Callable[[httpx.Response], Any],
        more: Mapping[str, str] | None = None,
    ) -> Any:
        headers = {"Accept-Encoding": "identity", **(more or {})}
        headers |= self._grant() if content is not None else {}
        address = f"{self.address}/{path}"
        try:
            with self._client.stream(method, address, content=content, headers=headers) as answer:
                return read(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(in_words(error, self.address)) from error

    def _grant(self) -> dict[str, str]:
        if self._membership is None:
            return {}
        try:
            return {GRANT_HEADER: self._membership.token.decode()}
        except GrantError as error:
            raise UnreachableError(f"our access: {error}") from error
