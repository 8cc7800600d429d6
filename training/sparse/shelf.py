"""Files that a volunteer keeps for others: the newest ones, up to a number of bytes."""

import threading
from collections import OrderedDict

MOST_BYTES = 2**26  # 64 MiB: about 18 updates of the paper's model
LARGEST = 2**23  # bytes of a file: no checkpoints


class Shelf:
    """The newest files by their SHA-256, for any thread.

    Args:
        most_bytes: of all files together.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, sha256: str, content: bytes) -> None:
        """Keep a file as the newest one."""
        if len(content) > min(LARGEST, self._most_bytes):
            return
        with self._lock:
            self._bytes += len(content) - len(self._files.pop(sha256, b""))
            self._files[sha256] = content
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._files.popitem(last=False)[1])

    def find(self, sha256: str) -> bytes | None:
        """The file with that sum, None where it is not kept."""
        with self._lock:
            return self._files.get(sha256)
