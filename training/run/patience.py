"""Work that may take long: it says so while it does, and a limit looks at whether it goes on."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

NEWS_SECONDS = 10.0  # before a second line; each further one comes after twice the time


@contextlib.contextmanager
def told(words: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say what the block does, and now and then that it goes on."""
    out, over, began = stream or sys.stdout, threading.Event(), time.monotonic()
    print(words, file=out, flush=True)

    def tell() -> None:
        pause = NEWS_SECONDS
        while not over.wait(pause):
            pause = seconds = time.monotonic() - began
            print(f"{words}: {seconds:.0f} s so far", file=out, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Silence:
    """The time since a process was last seen to compute: a busy machine makes nobody late.

    Args:
        spent: gives its processor seconds so far.
        work: so many of them are progress.
    """

    def __init__(self, spent: Callable[[], float], work: float) -> None:
        self._spent, self._work = spent, work
        self._seen, self._since = spent(), time.monotonic()

    def seconds(self) -> float:
        """Seconds since the last progress."""
        spent = self._spent()
        if abs(spent - self._seen) >= self._work:
            self._seen, self._since = spent, time.monotonic()
        return time.monotonic() - self._since


def processor_seconds(process: int | None) -> float:
    """Processor time that a process has taken so far; 0 where that is not known."""
    try:
        import psutil  # here, so that the doctor starts where packages are missing
    except ImportError:
        return 0.0
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
