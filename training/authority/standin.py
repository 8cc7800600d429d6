"""A stand-in for the Hugging Face Hub: made-up accounts, for rehearsals and tests.

It answers ``/api/whoami-v2`` as the Hub does, on this machine only.
"""

import json
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class StandInUser:
    """A made-up account and its organisations."""

    name: str
    organisations: tuple[str, ...] = ()


class StandInHub(AbstractContextManager["StandInHub"]):
    """Serves made-up accounts, by token, in a thread until it is closed.

    Attributes:
        users: the accounts; a token not among them is answered with 401.
        is_down: answer everything with 503.
    """

    def __init__(self, users: dict[str, StandInUser]) -> None:
        self.users, self.is_down = users, False
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Answer one request."""
                status, body = hub._answer(self.path, self.headers.get("Authorization", ""))
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Its address, for the environment variable ``HF_ENDPOINT`` of the authority."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, path: str, authorization: str) -> tuple[int, dict[str, Any]]:
        if self.is_down:
            return 503, {"error": "Service unavailable"}
        if path != "/api/whoami-v2":
            return 404, {"error": "Sorry, we can't find the page you are looking for."}
        user = self.users.get(authorization.removeprefix("Bearer "))
        if user is None:
            return 401, {"error": "Invalid user token."}
        return 200, whoami(user)


def whoami(user: StandInUser) -> dict[str, Any]:
    """The Hub's answer about a user, as far as anybody here reads it."""
    return {
        "type": "user",
        "name": user.name,
        "orgs": [{"type": "org", "name": name} for name in user.organisations],
        "auth": {"type": "access_token", "accessToken": {"role": "read"}},
    }
