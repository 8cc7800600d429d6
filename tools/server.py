"""A small server for site/ on this machine: byte ranges, compressed forms, no stale caches."""

import mimetypes
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from tools.console import BuildError
from tools.versions import VERSIONED

# What a server must say for a browser to take modules, and WebAssembly while it downloads.
# Python's own table follows the machine's settings.
for _suffix in (".js", ".mjs"):
    mimetypes.add_type("text/javascript", _suffix)
mimetypes.add_type("application/wasm", ".wasm")

ENCODINGS = {".br": "br", ".gz": "gzip"}  # of files that tools/compression.py made, best first
FOREVER = "public, max-age=31536000, immutable"
_LASTING = re.compile(rf"/{VERSIONED.pattern}/")  # as docs/_headers has it


class Site(StaticFiles):
    """The files of a folder, as static hosts send them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True, check_dir=False, follow_symlink=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The answer; browsers keep files named by their content, and ask again for all others."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as refused:
            response = PlainTextResponse(refused.detail, refused.status_code)
        lasts = response.status_code < 400 and _LASTING.search(scope["path"])
        response.headers["Cache-Control"] = FOREVER if lasts else "no-cache"
        return response

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """The best compressed form that the browser takes, unless it asks for a part."""
        headers = Headers(scope=scope)
        accepted = "" if "range" in headers else headers.get("accept-encoding", "")
        names = {name.partition(";")[0].strip() for name in accepted.split(",")}
        for suffix, encoding in ENCODINGS.items():
            form = Path(f"{full_path}{suffix}")
            status = form.stat() if encoding in names and form.is_file() else None
            if status and status.st_mtime >= stat_result.st_mtime:  # an older one is another's
                response = super().file_response(form, status, scope, status_code)
                response.headers.update({"Content-Encoding": encoding, "Vary": "Accept-Encoding"})
                return response
        return super().file_response(full_path, stat_result, scope, status_code)


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1:`port` (0: any free one) that browsers can already connect to.

    Raises BuildError when the port is taken or not allowed.
    """
    if not 0 <= port <= 65535:
        raise BuildError(f"port = {port}: must be between 0 and 65535.")
    try:
        return socket.create_server(("127.0.0.1", port))
    except PermissionError as error:
        raise BuildError(f"Port {port} needs more rights; try --port 8000.") from error
    except OSError as error:
        raise BuildError(f"Port {port} is taken; try --port {port + 1}.") from error


@contextmanager
def serving(
    site: Path | ASGIApp, listener: socket.socket | None = None, **options: Any
) -> Iterator[str]:
    """Serve a folder while the context lasts; give the address, with a slash.

    `listener` is one of `listen`, by default of a free port; `options` are of `uvicorn.Config`.
    """
    app = Site(site) if isinstance(site, Path) else site
    # No logs: the terminal shows builds, and a browser that leaves during a download is no error.
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, log_level="critical", access_log=False,
        timeout_graceful_shutdown=1, **options,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with listener or listen(0) as listening:
        thread = Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
