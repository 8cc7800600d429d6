"""Build, serve, and build again whenever a source changes."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path

from tools.console import ROOT, BuildError, run, say
from tools.environment import Group, ensure, venv_python
from tools.source import walked

POLL_SECONDS = 0.7


def serve(server: ThreadingHTTPServer) -> None:
    """Serve the built site until Ctrl-C, and build it again when a source changes."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"\nThe site is at http://127.0.0.1:{server.server_port}/  (Ctrl-C ends)")
    try:
        for changed in changes():
            say(f"\n{changed} changed.")
            _rebuild()
    except KeyboardInterrupt:
        say("")
    finally:
        server.shutdown()
        server.server_close()


def _rebuild() -> None:
    """Build in a new process, so that changed modules are read again."""
    try:
        ensure([Group.SITE])
        run([venv_python(), "-m", "tools.website"], "The new site could not be built.")
        say("The site is rebuilt; reload the page.")
    except BuildError as error:
        say(f"{error}\nThe site before this change is still served.")


def changes() -> Iterator[Path]:
    """The first changed source, each time that sources have changed and come to rest."""
    before = _snapshot()
    while True:
        time.sleep(POLL_SECONDS)
        now = _snapshot()
        if now == before:
            continue
        changed = min(path for path, _ in now.items() ^ before.items())
        while (later := _snapshot()) != now:
            now = later
            time.sleep(POLL_SECONDS)
        before = now
        yield changed.relative_to(ROOT)


def _snapshot() -> dict[Path, tuple[int, int]]:
    """The size and time of every watched file."""
    seen = {}
    for path in watched():
        with suppress(FileNotFoundError):
            status = path.stat()
            seen[path] = (status.st_size, status.st_mtime_ns)
    return seen


def watched() -> Iterator[Path]:
    """Every source but the tests: pages show the changelog, measurements, each package's words."""
    return (ROOT / name for name in walked() if not name.startswith("tests/"))
