"""Work that may take long, and says so while it does."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
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
