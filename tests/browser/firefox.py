"""Debian's Firefox, driven by its own remote protocol.

Playwright drives Firefox builds of its own, and needs commands that an ESR does not have yet.
Marionette, which geckodriver speaks, too, is JSON over a socket: each message is preceded by its
length and a colon, and a command is [0, id, name, parameters], its answer [1, id, error, value].
"""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("firefox-esr", "firefox")
PATIENCE_SECONDS = 120.0  # slow machines start Python slowly; nothing here measures time
POLL_SECONDS = 0.1
PREFERENCES = {
    "marionette.port": 0,  # any free one, which the profile's folder then names
    "app.update.disabledForTesting": True,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "toolkit.telemetry.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
}


def find_firefox() -> str | None:
    """The machine's Firefox."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Firefox:
    """One window of a running Firefox."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._last = 0
        self._receive()  # what it is and which version of the protocol it speaks
        self.command("WebDriver:NewSession", {})

    def command(self, name: str, parameters: dict[str, Any]) -> Any:
        """Send a command and return the answer's value.

        Raises:
            RuntimeError: with the browser's own words.
        """
        self._last += 1
        message = json.dumps([0, self._last, name, parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, value = self._receive()
        if error:
            raise RuntimeError(f"{name}: {error['message']}")
        return value

    def _receive(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            if not digit:
                raise RuntimeError("Firefox has closed the connection.")
            length += digit
        return json.loads(self._stream.read(int(length)))

    def open(self, address: str) -> None:
        """Go to a page and wait until it has loaded."""
        self.command("WebDriver:Navigate", {"url": address})

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        parameters = {"script": f"return ({expression});", "args": []}
        return self.command("WebDriver:ExecuteScript", parameters)["value"]

    def text(self, selector: str) -> str:
        """The text of the first element that a selector finds, "" if there is none."""
        found = self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")
        return (found or "").strip()

    def wait_for(self, expression: str) -> None:
        """Wait until a JavaScript expression is true.

        Raises:
            TimeoutError: when it never is.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"It never came: {expression}")
            time.sleep(POLL_SECONDS)


@contextmanager
def running_firefox(program: str, profile: Path) -> Iterator[Firefox]:
    """Start Firefox with a fresh profile; end it afterward."""
    lines = (f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items())
    (profile / "user.js").write_text("".join(lines))
    command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with socket.create_connection(("127.0.0.1", _port(profile, process))) as connection:
                connection.settimeout(PATIENCE_SECONDS)
                yield Firefox(connection)
        finally:
            process.terminate()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    """The port that it listens at, once it does."""
    named = profile / "MarionetteActivePort"
    end = time.monotonic() + PATIENCE_SECONDS
    while not (named.exists() and named.read_text().isdigit()):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("Firefox did not start.")
        time.sleep(POLL_SECONDS)
    return int(named.read_text())
