"""A small object store for tests, which can be ended and started again at the same address.

It answers PUT, GET, HEAD and DELETE of /BUCKET/KEY, and checks each signature as the makers of such
stores describe it, in code of its own. What a bucket holds lies in a folder under the key's last
part, for tests to spoil.
"""

import hashlib
import hmac
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlparse

from tests.training.answering import Answering, served
from training.sparse.object_store import ObjectStore

IDENTITY, SECRET, REGION = "AKIATEST", "kept+by/the+owner", "eu-test-1"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}


class RefusedError(Exception):
    """A request that the store does not take: status and the maker's word."""


def hashed(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


class Handler(Answering):
    folder: Path

    def authorize(self) -> None:
        path, _, query = self.path.partition("?")
        asked = dict(parse_qsl(query, keep_blank_values=True))
        try:
            claimed = asked.pop("X-Amz-Signature")
            identity, day, region, service, end = asked["X-Amz-Credential"].split("/")
            begun = datetime.strptime(asked["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            names = asked["X-Amz-SignedHeaders"].split(";")
            seconds = int(asked["X-Amz-Expires"])
        except (KeyError, ValueError):
            raise RefusedError(403, "AccessDenied") from None
        if identity != IDENTITY:
            raise RefusedError(403, "InvalidAccessKeyId")
        if not 0 <= time.time() - begun.timestamp() <= seconds:
            raise RefusedError(403, "AccessDenied")
        request = [self.command, quote(unquote(path))]
        request.append("&".join(f"{quote(k, '')}={quote(v, '')}" for k, v in sorted(asked.items())))
        request += [f"{name}:{self.headers.get(name, '')}" for name in names]
        request += ["", ";".join(names), "UNSIGNED-PAYLOAD"]
        summed = hashlib.sha256("\n".join(request).encode()).hexdigest()
        scope = f"{day}/{region}/{service}/{end}"
        text = f"AWS4-HMAC-SHA256\n{asked['X-Amz-Date']}\n{scope}\n{summed}"
        key = f"AWS4{SECRET}".encode()
        for part in (day, REGION, "s3", "aws4_request"):
            key = hashed(key, part)
        if "host" not in names or not hmac.compare_digest(hashed(key, text).hex(), claimed):
            raise RefusedError(403, "SignatureDoesNotMatch")

    def respond(self) -> None:
        try:
            self.authorize()
            self.answer(getattr(self, f"_{self.command.lower()}")(self.file()))
        except RefusedError as refusal:
            status, word = refusal.args
            self.answer(f"<?xml version='1.0'?><Error><Code>{word}</Code></Error>".encode(), status)

    do_PUT = do_GET = do_HEAD = do_DELETE = respond

    def file(self) -> Path:
        return self.folder / self.path.partition("?")[0].rpartition("/")[2]

    def _put(self, path: Path) -> bytes:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        path.write_bytes(content)
        return b""

    def _get(self, path: Path) -> bytes:
        if not path.is_file():
            raise RefusedError(404, "NoSuchKey")
        return path.read_bytes()

    _head = _get

    def _delete(self, path: Path) -> bytes:
        path.unlink(missing_ok=True)
        return b""


@dataclass
class ObjectServer:
    """An object store of this process.

    Attributes:
        folder: with its files.
    """

    folder: Path
    address: str = ""
    _served: ExitStack = field(default_factory=ExitStack, repr=False)

    def start(self) -> None:
        """Start it, the first time at any port."""
        self.folder.mkdir(exist_ok=True)
        handler = type("Handler", (Handler,), {"folder": self.folder})
        server = ThreadingHTTPServer(("127.0.0.1", urlparse(self.address).port or 0), handler)
        self.address = f"{self._served.enter_context(served(server))}/bucket/our-run"

    def stop(self) -> None:
        """End it."""
        self._served.close()

    def names(self) -> set[str]:
        """The keys' last parts."""
        return {path.name for path in self.folder.iterdir()}

    def open(self, **environment: str) -> ObjectStore:
        """The store with its owner's keys."""
        return ObjectStore.from_environment(self.address, ENVIRONMENT | environment)
