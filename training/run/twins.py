"""Compressed twins of the live data's large files: NAME.gz beside NAME, for the page's first look.

A twin is one gzip member, since browsers refuse a second one in a file, and is replaced whole.
"""

import gzip
from pathlib import Path

from training.run import atomic

SMALLEST_BYTES = 1 << 16  # of a file that is worth it, and of what a growing one may be ahead
LEVEL = 6  # 9 saves another 6 % of a long progress.jsonl and takes three times as long


def path_of(plain: Path) -> Path:
    """The path of a file's twin."""
    return plain.with_name(f"{plain.name}.gz")


def write(plain: Path) -> int:
    """Write the twin of what a file holds now; the bytes that it covers."""
    content = plain.read_bytes()
    atomic.write_bytes(path_of(plain), gzip.compress(content, LEVEL, mtime=0))
    return len(content)
