"""Files that are either the old or the new ones, whatever happens in between."""

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from calculator.errors import InputError

T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; when the block ends well, it becomes `path`.

    A reader sees the whole old file or the whole new one, a crash leaves the old one. Each
    thread has a temporary path of its own, so that two writers do not take each other's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file at once."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON at once; a number that JSON does not know raises ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    write_bytes(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """The value in a JSON file, None where there is no file.

    Raises:
        InputError: when the file holds something else.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise InputError("file", path, f"must hold JSON: {error}") from error


def read_objects(path: Path, make: Callable[[dict[str, Any]], T]) -> list[T]:
    """Results of `make` for each object in a JSON file's list; empty if there is no file.

    Raises:
        InputError: when the file holds something else, or `make` cannot make anything of it.
    """
    entries = read_json(path) or []
    try:
        return [make(entry) for entry in entries]
    except (TypeError, ValueError) as error:
        raise InputError("file", path, f"must hold a list as it was written: {error}") from error


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class AppendOnlyLines:
    """A file that only grows, a JSON object a line; the page asks for its newest bytes.

    A line goes to disk in one write. When a crash cut the last line short, opening the file
    again removes the piece, so that the next line does not continue it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._drop_incomplete_line()

    def append(self, value: dict[str, Any]) -> None:
        """Add one line and wait until the disk has it; NaN and infinity raise ValueError.

        Raises:
            OSError: the disk has no room for all of it; then none of it is there.
        """
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        content = f"{line}\n".encode()
        with self.path.open("ab", buffering=0) as file:
            before = file.tell()
            written = file.write(content)
            if written < len(content):
                file.truncate(before)
                raise OSError(errno.ENOSPC, "there is no room for a line")
            os.fsync(file.fileno())

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; raises InputError when one is no JSON object."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        return [self._parse(line) for line in whole.split(b"\n")[:-1]]

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(self.path.name, line, f"each line must be JSON: {error}") from error
        if not isinstance(value, dict):
            raise InputError(self.path.name, line, "each line must be a JSON object")
        return value

    def _drop_incomplete_line(self) -> None:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole != len(content):
            os.truncate(self.path, whole)
