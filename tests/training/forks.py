"""Programs that `nursery.py` forks, as if they were processes started from here."""

import fcntl
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from training.run.patience import Silence, processor_seconds
from training.run.supervisor import COMMAND, WORK_SECONDS, Worker

NURSERY = Path(__file__).with_name("nursery.py")
MEMBER = Path(__file__).with_name("member.py")


class Fork(Worker):
    """A program that computes with one thread.

    Args:
        arguments: of the program.
        namespace: network namespace to run in; None: this machine's own.
        environment: variables of its own; the libraries that are loaded have read theirs.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        log: Path,
        namespace: str | None = None,
        program: Path = MEMBER,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__([str(program), *arguments], folder, 1, log, environment)
        self.namespace = namespace

    def run(self, seconds: float) -> tuple[int, str]:
        """Start the process, and wait until it ends; its exit status and what it wrote.

        Raises:
            TimeoutExpired: when it has not ended after so many seconds.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        self.start()
        try:
            return self.process.wait(seconds), self.log.read_text()
        finally:
            self.kill()

    def start(self) -> None:
        """Start the process."""
        assert self.log is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        pid = _ask(
            command=self.command,
            log=str(self.log),
            environment=os.environ | {"OMP_NUM_THREADS": "1"} | self.environment,
            namespace=self.namespace,
        )
        self.process = _Forked(pid)
        self.started_at = time.monotonic()
        self._silence = Silence(functools.partial(processor_seconds, pid), WORK_SECONDS)


class CommandFork(Fork):
    """A fork that does what our command would, given as to `Worker`."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        _threads: int | None = None,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        assert tuple(command[: len(COMMAND)]) == COMMAND
        assert log is not None
        super().__init__(command[len(COMMAND) :], folder, log, environment=environment)


class _Forked(subprocess.Popen[bytes]):
    """A process whose parent is the nursery, which alone can be told how it ended."""

    def __init__(self, pid: int) -> None:
        self.args, self.pid, self.returncode = ["fork"], pid, None
        self._polling = threading.Lock()

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        with self._polling:
            if self.returncode is None:
                self.returncode = _ask(ended=self.pid)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it has ended.

        Raises:
            TimeoutExpired: when it has not after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(0.05)
        return code


@functools.cache
def _nursery() -> str:
    """Address of the process that members are forked from, one for all processes of a run.

    It ends with the run.
    """
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    address = Path(tempfile.gettempdir(), f"nursery-{run}")
    with address.with_suffix(".lock").open("w") as lock, socket.socket(socket.AF_UNIX) as listening:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _listens(address):
            address.unlink(missing_ok=True)
            listening.bind(str(address))
            listening.listen()
            place = listening.fileno()
            subprocess.run(
                [sys.executable, str(NURSERY), str(place), str(run)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"OMP_NUM_THREADS": "1", "DIFFUSERS_VERBOSITY": "error"},
                pass_fds=(place,),
                check=True,
            )
    return str(address)


def _listens(address: Path) -> bool:
    """False where a run was killed that had this one's number, too."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(address)) == 0


def _ask(**asked: object) -> int | None:
    """The nursery's answer: a process ID or an exit status."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_nursery())
        with connection.makefile("rw") as line:
            line.write(json.dumps(asked) + "\n")
            line.flush()
            answer: int | None = json.loads(line.readline())
    return answer
