"""Output for the person at the terminal: steps with their times, and failures in plain words."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BuildError(Exception):
    """Something a person can act on; its text is shown as it is, without a traceback."""


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that a long step runs (with a clock on a terminal), then how long it took."""
    began = time.monotonic()
    done = threading.Event()
    on_terminal = sys.stdout.isatty()

    def tick() -> None:
        while not done.wait(1.0):
            print(f"\r  {title} ... {time.monotonic() - began:.0f} s", end="", flush=True)

    clock = threading.Thread(target=tick, daemon=True)
    if on_terminal:
        clock.start()
    else:
        say(f"  {title} ...")
    try:
        yield
    finally:
        done.set()
        if on_terminal:
            clock.join()
    start = "\r" if on_terminal else ""
    say(f"{start}  {title}: {time.monotonic() - began:.1f} s" + " " * 8)


def run(
    command: Sequence[str | Path],
    failure: str,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
) -> str:
    """Run `command` quietly and return its output.

    Raises BuildError with `failure` and the end of the output when it exits with another status
    than 0 or cannot be started.
    """
    try:
        finished = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise BuildError(f"{failure} ({error})") from error
    if finished.returncode != 0:
        raise BuildError(f"{failure}\n{_explain(finished.stdout)}")
    return finished.stdout


# Words in the output of pip, npm and compilers, and what they mean to a person.
_CAUSES = {
    r"Temporary failure in name resolution|Failed to establish a new connection"
    r"|Name or service not known|Network is unreachable|nodename nor servname|ConnectTimeoutError"
    r"|ENOTFOUND|EAI_AGAIN|ETIMEDOUT": (
        "The network cannot be reached. Go online (or set the proxy) and run the command again."
    ),
    r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT_IN_CHAIN": (
        "A certificate was rejected: there is a proxy between this machine and the registry."
    ),
    r"No space left on device|ENOSPC": (
        "The disk is full. Free some space and run the command again."
    ),
    r"DO NOT MATCH THE HASHES|EINTEGRITY": (
        "A downloaded file does not match its pin; it was not installed."
    ),
    r"command 'g?cc' failed|Microsoft Visual C\+\+|No such file or directory: 'gcc'": (
        "A package has to be compiled here, and there is no working C compiler. Install one "
        "(Debian: build-essential; macOS: xcode-select --install)."
    ),
    r"No matching distribution found|from versions: none": (
        "A pinned package has no build for this Python or system. Python 3.11 to 3.13 on Linux "
        "or macOS are what this project is tested on."
    ),
}


def _explain(output: str) -> str:
    """The cause of a failure if it is a known one, and the last lines of its output."""
    causes = [text for signs, text in _CAUSES.items() if re.search(signs, output)]
    last = [f"    | {line}" for line in output.splitlines() if line.strip()][-15:]
    return "\n".join([*causes[:1], *last])
