"""A disk that is full: the system takes no byte beyond a size of any file."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full(most_bytes: int) -> Iterator[None]:
    """Let this process write no more than so many bytes into a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
