"""Build, serve, and build again whenever a source changes: `python -m tools.serve PORT`."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tools.console import ROOT, BuildError, run, say
from tools.environment import Group, ensure
from tools.server import listen, serving
from tools.source import walked
from tools.website import SITE, build_site

POLL_SECONDS = 0.7


def serve(port: int) -> None:
    """Serve the built site until Ctrl-C, and build it again when a source changes."""
    # The port first: whoever has it taken should not wait for a build to hear of it.
    with listen(port) as listener:
        build_site(to_publish=False)
        with suppress(KeyboardInterrupt), serving(SITE, listener) as address:
            say(f"\nThe site is at {address}  (Ctrl-C ends)")
            for changed in changes():
                say(f"\n{changed} changed.")
                _rebuild()


def _rebuild() -> None:
    """Build in a new process, so that changed modules are read again."""
    try:
        ensure([Group.SITE])
        run([sys.executable, "-m", "tools.website"], "The new site could not be built.")
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


if __name__ == "__main__":
    try:
        serve(int(sys.argv[1]))
    except BuildError as error:
        sys.exit(f"build.py: {error}")
    except KeyboardInterrupt:
        say("\nStopped; nothing is left half-done.")
