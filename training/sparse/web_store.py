"""The store of a volunteer: its run's web host, asked over http(s)."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from training.access.grants import GrantError
from training.access.membership import Membership
from training.sparse.store import StoreError, checked_name, is_digest
from training.sparse.web import GRANT_HEADER, LISTED

ANSWER_SECONDS = 60.0  # without any byte
MOST_TEXT = 2**20  # bytes of an answer that is no file
_DIGEST_BYTES = 64


class UnreachableError(StoreError):
    """The host does not answer, or not now; it may later."""


class RefusedError(StoreError):
    """The host does not take a file; the message says why."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host's answer about its run.

    Attributes:
        round: number of the open one.
        peers: volunteers that it hears.
        judging: true while it waits for verdicts on the round's updates.
    """

    run: str
    round: int
    finished: bool
    peers: int
    judging: bool


class WebStore:
    """Files of a run's web host.

    Payloads and reports are uploaded to it; it names them and closes the rounds itself.

    Args:
        address: of the host. membership: our access, where the run has an authority.

    Attributes:
        bytes_sent, bytes_received: of files.
    """

    def __init__(self, address: str, membership: Membership | None = None) -> None:
        self.address = address.rstrip("/")
        self.bytes_sent = self.bytes_received = 0
        self._membership = membership
        self._kept: dict[str, bytes] = {}  # our newest upload, and what was fetched ahead since
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

    def judge(self, content: bytes) -> None:
        """Upload a signed verdict; raises as `put` does."""
        self._upload("verdicts", content)

    def fetch_ahead(self, sha256: str, most_bytes: int) -> None:
        """Get a file that is needed again before the next upload; raises as `get` does."""
        self._kept[sha256] = self.get(sha256, most_bytes)

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
        content = self._ask(f"files/{sha256}", most_bytes)
        if content is None:
            raise StoreError(f"{sha256[:12]} is not there")
        self.bytes_received += len(content)
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
        """The names in a folder, in order; of checkpoints and of a round's verdicts alone.

        Raises:
            StoreError: the host's answer is no list of names.
        """
        if not LISTED.fullmatch(folder):
            raise StoreError(f"the host does not list {folder}")
        content = self._ask(f"names/{folder}", MOST_TEXT)
        found = _parse(content or b"[]")
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise StoreError("the host's answer is no list of names")
        return sorted(checked_name(name) for name in found)

    def describe(self) -> HostStatus:
        """The host's answer about its run.

        Raises:
            UnreachableError: the host does not answer. StoreError: it says something else.
        """
        content = self._ask("round", MOST_TEXT)
        values = _parse(content or b"null")
        fields = HostStatus.__annotations__
        if not isinstance(values, dict) or values.keys() != fields.keys():
            raise StoreError(f"{self.address} is no host of a run")
        if not all(type(values[name]) is kind for name, kind in fields.items()):
            raise StoreError(f"{self.address} is no host of a run")
        return HostStatus(**values)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _ask(self, path: str, most_bytes: int) -> bytes | None:
        """The content at an address of the host, None where there is none."""

        def read(answer: httpx.Response) -> bytes | None:
            if answer.status_code == httpx.codes.NOT_FOUND:
                return None
            if answer.status_code != httpx.codes.OK:
                raise UnreachableError(f"{self.address} answers with status {answer.status_code}")
            return _read(answer, most_bytes, path)

        content: bytes | None = self._send("GET", path, None, read)
        return content

    def _upload(self, path: str, content: bytes) -> None:
        def read(answer: httpx.Response) -> None:
            if answer.is_success:
                return
            if not answer.is_client_error:
                raise UnreachableError(f"{self.address} answers with status {answer.status_code}")
            found = _parse(_read(answer, MOST_TEXT, path))
            why = found.get("error") if isinstance(found, dict) else None
            status = f"status {answer.status_code}"
            raise RefusedError(_printable(why) if isinstance(why, str) else status)

        self._send("PUT", path, content, read)
        self.bytes_sent += len(content)

    def _send(
        self, method: str, path: str, content: bytes | None, read: Callable[[httpx.Response], Any]
    ) -> Any:
        headers = {"Accept-Encoding": "identity", **(self._grant() if content is not None else {})}
        address = f"{self.address}/{path}"
        try:
            with self._client.stream(method, address, content=content, headers=headers) as answer:
                return read(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(_in_words(error, self.address)) from error

    def _grant(self) -> dict[str, str]:
        if self._membership is None:
            return {}
        try:
            return {GRANT_HEADER: self._membership.token.decode()}
        except GrantError as error:
            raise UnreachableError(f"our access: {error}") from error


def is_outage(error: BaseException | None) -> bool:
    """True if an error came of a host that does not answer."""
    while error is not None and not isinstance(error, UnreachableError):
        error = error.__cause__
    return error is not None


def _read(answer: httpx.Response, most_bytes: int, path: str) -> bytes:
    content = bytearray()
    for piece in answer.iter_raw():
        content += piece
        if len(content) > most_bytes:
            raise StoreError(f"{path[:20]} has more than {most_bytes:,} bytes")
    return bytes(content)


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreError("the host's answer is no JSON") from error


def _printable(text: str) -> str:
    """Text from another machine, shortened and without characters that would steer a terminal."""
    return re.sub(r"[^\x20-\x7e]", " ", text)[:300]


def _in_words(error: Exception, address: str) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"{address} did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {address}"
    return f"{address}: {type(error).__name__}"
