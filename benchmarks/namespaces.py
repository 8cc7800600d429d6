"""Network namespaces on this machine, joined by the slow lines of `router.py`: root and Linux."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.router import NETWORK, Lines

HERE = Path(__file__).parent


class UnavailableError(RuntimeError):
    """This machine has no network namespaces for us; the message says what is missing."""


class Process:
    """A process that is spoken to in lines of JSON."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        self.log = log

    def tell(self, **request: Any) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for a line.

        Raises:
            RuntimeError: when the process ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            words = self.log.read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"a process ended: {' / '.join(words[-3:])}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Close its input, on which it ends by itself; else end it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):  # what it forked and left behind
            os.killpg(self._process.pid, signal.SIGKILL)


class Namespaces:
    """So many namespaces, each with one line to the others.

    Raises:
        UnavailableError: without root, iproute2 or TUN devices.
    """

    def __init__(self, count: int, folder: Path, congestion: str) -> None:
        if os.geteuid() != 0:
            raise UnavailableError("network namespaces need root")
        if shutil.which("ip") is None or not Path("/dev/net/tun").exists():
            raise UnavailableError("network namespaces need iproute2 and /dev/net/tun")
        self.folder, self.lines = folder, Lines()
        self.names = [f"slow{os.getpid()}-{number}" for number in range(1, count + 1)]
        try:
            for name in self.names:
                subprocess.run(["ip", "netns", "add", name], check=True)
            command = [sys.executable, str(HERE / "router.py"), congestion, *self.names]
            if shutil.which("nice"):  # packets must not wait for those who compute
                command = ["nice", "-n", "-10", *command]
            self._router = Process(command, folder / "router.txt")
            self._router.answer()
        except Exception:
            self._remove()
            raise

    def __enter__(self) -> "Namespaces":
        return self

    def __exit__(self, *_error: object) -> None:
        self._router.end()
        self._remove()

    def start(self, number: int, script: str, *arguments: str) -> Process:
        """Start one of our scripts in a namespace, counted from 1."""
        inside = ["ip", "netns", "exec", self.names[number - 1]]
        command = [*inside, sys.executable, str(HERE / script), *arguments]
        return Process(command, self.folder / f"{script}-{number}.txt")

    def set_lines(self, lines: Lines) -> dict[str, Any]:
        """Make all lines so; what the router counted since the last time."""
        self.lines = lines
        self._router.tell(**asdict(lines))
        return self._router.answer()

    @staticmethod
    def host(number: int) -> str:
        """The address of a namespace."""
        return f"{NETWORK}{number}"

    def _remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
