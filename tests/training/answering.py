"""Web servers on this machine for tests: served while a block runs, silent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any


class Answering(BaseHTTPRequestHandler):
    """Logs nothing, and answers with a content of known length."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def served(server: HTTPServer) -> Iterator[str]:
    """The address of a server, which answers while the block runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def on_any_port(handler: type[Answering]) -> HTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)
