"""Keeps a peer running: in a process of its own, under watch.

The averaging library forks while torch runs, and about one start in fifty hangs in that; a
process that ended abruptly leaves its network daemon behind. So each peer runs in a session of
its own: the supervisor restarts a start that does not answer, brings a crashed peer back, and
ends the whole session when the peer is over.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from training.run import status
from training.run.patience import Silence, processor_seconds

START_SECONDS = 90.0  # of a start without any progress
WORK_SECONDS = 1.0  # of processor time that are progress
GOODBYE_SECONDS = 45.0
CRASHES = 5  # in a row: then it is not bad luck
STEADY_SECONDS = 300.0  # a peer that ran for so long is not crashing in a row

INPUT_ERROR = 2
CANNOT_CONNECT = 75  # the code that mail servers use for "try again later"
NOT_ADMITTED = 77  # and theirs for "permission denied": trying again is of no use
PAUSE_SECONDS = {CANNOT_CONNECT: 15.0}


COMMAND = (sys.executable, "-m", "training")


def endpoint_words(options: argparse.Namespace) -> list[str]:
    """Options that say where a peer listens, as they are typed."""
    words = ["--host", options.host, "--port", str(options.port)]
    if options.announce:
        words += ["--announce", *options.announce]
    if options.behind_firewall:
        words.append("--behind-firewall")
    return words


class Worker:
    """A command in a session of its own.

    Args:
        command: the program and its arguments.
        folder: the peer's folder, where it writes its status.
        threads: processor threads to compute with; None: as many as torch takes.
        log: where its output goes; None: to this terminal.
        environment: variables of its own.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        threads: int | None = None,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command, self.folder, self.threads, self.log = list(command), folder, threads, log
        self.environment = dict(environment or {})
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self._silence: Silence | None = None

    def start(self) -> None:
        """Start the process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"TRAINING_SUPERVISOR": str(os.getpid())} | self.environment
        if self.threads is not None:
            environment["OMP_NUM_THREADS"] = str(self.threads)
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(self.log.open("ab")) if self.log else None
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=environment,
            )
        self.started_at = time.monotonic()
        self._silence = Silence(partial(processor_seconds, self.process.pid), WORK_SECONDS)

    @property
    def exit_code(self) -> int | None:
        """The process' exit code, None while it runs."""
        return self.process.poll() if self.process else None

    @property
    def has_started(self) -> bool:
        """True if the process has reported that it has started."""
        told = status.read(self.folder)
        return bool(self.process and told.get("pid") == self.process.pid and told.get("started"))

    @property
    def hangs(self) -> bool:
        """True if a start has made no progress for long: neither reported any nor computed.

        On a busy machine a start takes as long as it takes; one that hangs computes nothing.
        """
        if self._silence is None or self.exit_code is not None or self.has_started:
            return False
        silent = self._silence.seconds()
        told = status.read(self.folder)
        if self.process and told.get("pid") == self.process.pid:
            silent = min(silent, time.time() - float(told.get("time", 0.0)))
        return silent > START_SECONDS

    def stop(self, seconds: float = GOODBYE_SECONDS) -> None:
        """Ask the process to end, wait, and end whatever is left."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def supervise(worker: Worker, stop: threading.Event) -> int:
    """Keep a worker running until it is done, `stop` is set, or it keeps crashing.

    Gives the exit code to end with.
    """
    crashes = 0
    while not stop.is_set():
        worker.start()
        code = _watch(worker, stop)
        if stop.is_set():
            break
        if code in (0, INPUT_ERROR, NOT_ADMITTED):
            return code
        if code != CANNOT_CONNECT:
            steady = time.monotonic() - worker.started_at > STEADY_SECONDS
            crashes = 1 if steady else crashes + 1
        if crashes >= CRASHES:
            log = worker.folder / "log.txt"
            print(
                f"ended unexpectedly {crashes} times in a row: giving up. Send {log} to the "
                "organizers",
                flush=True,
            )
            return 1
        pause = PAUSE_SECONDS.get(code, 3.0)
        print(f"trying again in {pause:.0f} s (Ctrl-C to stop)", flush=True)
        stop.wait(pause)
    worker.stop()
    return 0


def _watch(worker: Worker, stop: threading.Event) -> int:
    """Wait until the worker ends or hangs in its start; its exit code."""
    while not stop.wait(0.5):
        if worker.hangs:
            print(f"the start made no progress for {START_SECONDS:.0f} s: again", flush=True)
            worker.kill()
        if worker.exit_code is not None:
            worker.kill()  # what it left behind
            return worker.exit_code
    return 0


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` at Ctrl-C and at a polite request to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A block in which Ctrl-C and a polite request to end raise KeyboardInterrupt."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_without_supervisor(stop: Callable[[], object]) -> None:
    """In a worker: call `stop` when the supervisor is gone, and end everything if that hangs."""
    supervisor = os.environ.get("TRAINING_SUPERVISOR")
    if supervisor is None:
        return

    def watch() -> None:
        while os.getppid() == int(supervisor):
            time.sleep(1.0)
        stop()
        time.sleep(GOODBYE_SECONDS)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
