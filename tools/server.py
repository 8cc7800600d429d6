"""A small server for site/ on this machine: right MIME types, byte ranges, no stale caches."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from tools.console import BuildError
from tools.versions import VERSIONED

# What a server must say for a browser to take modules, and WebAssembly while it downloads.
# Written out, since Python's own table follows the machine's settings.
MIME_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
    ".json": "application/json", ".jsonl": "application/x-ndjson", ".svg": "image/svg+xml",
    ".png": "image/png", ".wasm": "application/wasm", ".woff2": "font/woff2",
    ".xml": "application/xml", ".zip": "application/zip",
}  # fmt: skip
ENCODINGS = {".br": "br", ".gz": "gzip"}  # of files that tools/compression.py made, best first
FOREVER = "public, max-age=31536000, immutable"
_LASTING = re.compile(rf"/{VERSIONED.pattern}/")  # as docs/_headers has it
_RANGE = re.compile(r"bytes=(\d+)-(\d*)$")


class SiteHandler(SimpleHTTPRequestHandler):
    """Serves one folder; quiet; answers `Range: bytes=a-b` as static hosts do."""

    protocol_version = "HTTP/1.1"
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, **MIME_TYPES}  # noqa: RUF012

    _compressed: tuple[Path, str] | None = None  # what answers the request, and its encoding
    _status = HTTPStatus.OK.value

    def send_head(self) -> BytesIO | BinaryIO | None:
        """A part of a file when a range is asked for, or its compressed form where there is one."""
        self._compressed = None
        found = _RANGE.match(self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if found is None or not path.is_file():
            self._compressed = None if found else self._find_compressed()
            return super().send_head()
        size = path.stat().st_size
        first = int(found[1])
        last = min(int(found[2]), size - 1) if found[2] else size - 1
        if first > last:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if self.command == "GET":
            with path.open("rb") as file:
                file.seek(first)
                self.wfile.write(file.read(last - first + 1))
        return None

    def translate_path(self, path: str) -> str:
        """The file that answers a request."""
        return str(self._compressed[0]) if self._compressed else super().translate_path(path)

    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """The type of what is inside, not of how it is compressed."""
        suffix = self._compressed[0].suffix if self._compressed else ""
        return super().guess_type(os.fspath(path).removesuffix(suffix))

    def _find_compressed(self) -> tuple[Path, str] | None:
        """The best form that the browser takes, and its encoding; None where there is none."""
        plain = Path(self.translate_path(self.path))
        if plain.is_dir() and self.path.partition("?")[0].endswith("/"):
            plain /= "index.html"
        accepted = self.headers.get("Accept-Encoding", "")
        names = {name.partition(";")[0].strip() for name in accepted.split(",")}
        for suffix, encoding in ENCODINGS.items():
            found = plain.with_name(plain.name + suffix)
            is_taken = encoding in names and found.is_file() and plain.is_file()
            # an older one is of another content
            if is_taken and found.stat().st_mtime >= plain.stat().st_mtime:
                return found, encoding
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The site's own page for what is not there, as static hosts show it."""
        page = Path(self.directory) / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self) -> None:
        """Browsers keep files named by their content, and ask again for all others."""
        lasts = self._status < HTTPStatus.MULTIPLE_CHOICES and _LASTING.search(self.path)
        self.send_header("Cache-Control", FOREVER if lasts else "no-cache")
        if self._compressed:
            self.send_header("Content-Encoding", self._compressed[1])
            self.send_header("Vary", "Accept-Encoding")
        super().end_headers()

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer."""
        self._status = code
        super().send_response(code, message)

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal shows builds, not requests."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that leaves in the middle of a download is no error."""


def make_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of `folder` on 127.0.0.1:`port` (0: any free one); start it with serve_forever.

    Raises BuildError when the port is taken or not allowed.
    """
    if not 0 <= port <= 65535:
        raise BuildError(f"port = {port}: must be between 0 and 65535.")
    handler = partial(SiteHandler, directory=str(folder))
    try:
        return _Server(("127.0.0.1", port), handler)
    except PermissionError as error:
        raise BuildError(f"Port {port} needs more rights; try --port 8000.") from error
    except OSError as error:
        raise BuildError(f"Port {port} is taken; try --port {port + 1}.") from error


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve `folder` on a free port while the context lasts; give the address, with a slash."""
    with make_server(folder, 0) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
