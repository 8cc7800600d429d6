"""Work that may take long, and says so while it does."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

NEWS_SECONDS = 10.0  # between two lines


@contextlib.contextmanager
def told(words: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say what the block does, and every few seconds that it goes on."""
    out, over, began = stream or sys.stdout, threading.Event(), time.monotonic()
    print(words, file=out, flush=True)

    def tell() -> None:
        while not over.wait(NEWS_SECONDS):
            seconds = time.monotonic() - began
            print(f"{words}: {seconds:.0f} s so far", file=out, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
