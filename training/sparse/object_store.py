"""An object store for a run's large files: anyone's S3, R2, MinIO and so on.

The owner of the store has its keys, in the environment of the monitor alone. A volunteer gets an
address for each file, with which it can upload this file and no other one (the store checks length
and SHA-256), or download it. What comes from the store is checked like any other file: if it is
not there, too long or another, the run's web host has it as well.
"""

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import httpx

from calculator.errors import InputError
from training.access.client import in_words, printable
from training.sparse import answers
from training.sparse.answers import Begun
from training.sparse.presigned import Keys, presign
from training.sparse.store import StoreError, UnreachableError

PERMITTED_SECONDS = 900  # for one transfer
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 15.0  # the second one without any byte
_MOST_ANSWER = 2**16
_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True, slots=True)
class Permission:
    """An address for one upload, and the headers that must come with it."""

    address: str = field(repr=False)
    headers: Mapping[str, str]


class ObjectFiles:
    """Transfers to and from a store, by addresses that somebody else has signed.

    Args:
        address: of the store: transfers go nowhere else.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        self._client = httpx.Client(timeout=timeout, follow_redirects=False)

    def upload(self, permission: Permission, content: bytes) -> None:
        """Upload a file.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it does not take the file.
        """
        self._send("PUT", permission.address, permission.headers, content, _MOST_ANSWER)

    def download(
        self, address: str, sha256: str, most_bytes: int, begun: Begun | None = None
    ) -> bytes:
        """The file with that sum; `begun` as of `answers.read`.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it is not there, has more than `most_bytes` bytes, or is another.
        """
        begun = Begun() if begun is None else begun
        content = self._send("GET", address, answers.the_rest(begun), None, most_bytes, begun)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StoreError(f"{sha256[:12]} is another file in the store: its SHA-256 differs")
        return content

    def remove(self, address: str) -> None:
        """Remove a file; raises as `upload` does."""
        self._send("DELETE", address, {}, None, _MOST_ANSWER)

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _send(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str],
        content: bytes | None,
        most_bytes: int,
        begun: Begun | None = None,
    ) -> bytes:
        if not address.startswith(f"{self.address}/"):
            raise StoreError(f"an address that is not in {self.address}")
        headers = {"Accept-Encoding": "identity", **headers}
        try:
            with self._client.stream(method, address, content=content, headers=headers) as answer:
                if answer.is_server_error:
                    status = f"{self.address} answers with status {answer.status_code}"
                    raise UnreachableError(status)
                if not answer.is_success:
                    raise StoreError(_refusal(answer, self.address))
                return answers.read(answer, most_bytes, "a file in the store", begun)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(in_words(error, self.address)) from error


class ObjectStore:
    """A store and its owner's keys: signs addresses for others, and uses them itself.

    Args:
        address: of the store and a folder in it, such as
            ``https://s3.example.org/bucket/our-run``; the files lie there under their SHA-256.
        clock: gives seconds since 1970.
    """

    def __init__(self, address: str, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        self.files = ObjectFiles(address)
        self._keys, self._clock = keys, clock

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

    def permit_upload(self, sha256: str, size: int) -> Permission:
        """The permission to upload one file, of that sum and length."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        headers = {"content-length": str(size), "x-amz-checksum-sha256": checksum}
        return Permission(self._sign("PUT", sha256, headers), headers)

    def address_of(self, sha256: str) -> str:
        """An address from which one file can be downloaded for a while."""
        return self._sign("GET", sha256)

    def put(self, content: bytes) -> str:
        """Upload a file and give its SHA-256; raises as `ObjectFiles.upload` does."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.files.upload(self.permit_upload(sha256, len(content)), content)
        return sha256

    def get(self, sha256: str, most_bytes: int) -> bytes:
        """The file with that sum; raises as `ObjectFiles.download` does."""
        return self.files.download(self.address_of(sha256), sha256, most_bytes)

    def forget(self, sha256: str) -> None:
        """Remove a file; raises as `ObjectFiles.remove` does."""
        self.files.remove(self._sign("DELETE", sha256))

    def check(self) -> None:
        """Upload, download and remove a small file, and see that a wrong one is refused.

        Raises:
            UnreachableError: the store does not answer, or not now.
            StoreError: it does something else than it must.
        """
        content = b"a file that a monitor tries its store with"
        if self.get(self.put(content), len(content)) != content:
            raise StoreError("it gives another file than it was given")
        self.forget(hashlib.sha256(content).hexdigest())
        other = bytes(len(content))
        sha256 = hashlib.sha256(b"another one").hexdigest()
        try:
            self.files.upload(self.permit_upload(sha256, len(other)), other)
        except UnreachableError:
            raise
        except StoreError:
            return
        self.forget(sha256)
        raise StoreError("it takes a file whose SHA-256 is not the one that was signed")

    def describe(self) -> str:
        """Try the store, and say in one line how it is; a run goes on without it."""
        try:
            self.check()
        except StoreError as error:
            return f"{self.files.address} does not work: {error}; volunteers use the web host"
        return f"{self.files.address} works"

    def _sign(self, method: str, sha256: str, headers: Mapping[str, str] | None = None) -> str:
        address = f"{self.files.address}/{sha256}"
        return presign(method, address, self._keys, PERMITTED_SECONDS, self._clock(), headers)


def _refusal(answer: httpx.Response, address: str) -> str:
    """A store's own word for what is wrong, which stands in its answer in XML."""
    content = answers.read(answer, _MOST_ANSWER, "the store's answer").decode("utf-8", "replace")
    _, _, rest = content.partition("<Code>")
    code, found, _ = rest.partition("</Code>")
    word = f" ({printable(code)})" if found else ""
    return f"{address} answers with status {answer.status_code}{word}"
