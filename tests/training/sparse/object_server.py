"""A small object store for tests: `python object_server.py FOLDER [PORT]` prints its address.

It answers PUT, GET, HEAD and DELETE of /BUCKET/KEY, and checks each signature as the makers of such
stores describe it, in code of its own: nothing of training/ is imported. What a bucket holds lies
in FOLDER under the key's last part, for tests to spoil.
"""

import hashlib
import hmac
import sys
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

IDENTITY, SECRET, REGION = "AKIATEST", "kept+by/the+owner", "eu-test-1"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}


class RefusedError(Exception):
    """A request that the store does not take: status and the maker's word."""


def hashed(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


class Handler(BaseHTTPRequestHandler):
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

    def answer(self) -> None:
        try:
            self.authorize()
            body = getattr(self, f"_{self.command.lower()}")(self.file())
            status = 200
        except RefusedError as refusal:
            status, word = refusal.args
            body = f"<?xml version='1.0'?><Error><Code>{word}</Code></Error>".encode()
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_PUT = do_GET = do_HEAD = do_DELETE = answer

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

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    Handler.folder = Path(sys.argv[1])
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/bucket/our-run", flush=True)
    server.serve_forever()
