"""A stand-in for the Hugging Face Hub: made-up accounts, for rehearsals and tests.

It answers ``/api/whoami-v2`` as the Hub does, on this machine only.
"""

import json
import secrets
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from training.access.grants import public_key_text
from training.authority.keys import read_key
from training.run.supervisor import COMMAND, Worker


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


ORGANISATION = "rehearsal"


class RehearsedAuthority:
    """An authority as a process, and a stand-in for the Hub in a thread of this one.

    Args:
        run_file: of the rehearsal. folder: the authority's. port: to listen on. log: its output.
    """

    def __init__(self, run_file: Path, folder: Path, port: int, log: Path) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.key = public_key_text(read_key(folder))
        self.hub = StandInHub({})
        command = [*COMMAND, "authority", str(run_file), "serve", "--folder", str(folder)]
        command += ["--port", str(port)]
        environment = {"HF_ENDPOINT": self.hub.endpoint}
        self.worker = Worker(command, folder, 1, log, environment)

    def make_user(self, name: str) -> dict[str, str]:
        """Make up an account; gives the environment with which its owner joins."""
        token = f"made-up-{secrets.token_hex(16)}"
        self.hub.users[token] = StandInUser(name, (ORGANISATION,))
        # the true Hub does not know the token: downloads of public data are to do without
        return {"HF_TOKEN": token, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}

    def stop(self) -> None:
        """End the process and the stand-in."""
        self.worker.stop()
        self.hub.close()
