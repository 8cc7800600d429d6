"""Large files over lines that break: a download goes on where it stopped, and ends with its sum."""

import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from training.run import atomic

ANSWER_SECONDS = 60.0
ATTEMPTS = 5
PAUSE_SECONDS = 1.0  # before the second attempt; doubled before each later one
_CHUNK = 2**18
_WHOLE, _PARTIAL, _OUT_OF_RANGE = 200, 206, 416

Report = Callable[[int], None]


class WrongSumError(RuntimeError):
    """A file arrived whole, but it is not the one that was announced."""


class TooLongError(RuntimeError):
    """A file is longer than it can be."""


def is_web(address: str) -> bool:
    """True if an address is http or https: no other is ever followed."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # such as a bracket that is never closed
        return False


def is_local(address: str) -> bool:
    """True for an address of this machine."""
    return urlsplit(address).hostname in ("127.0.0.1", "::1", "localhost")


def is_private(address: str) -> bool:
    """True if no one can listen in on the way to an address."""
    return is_web(address) and (urlsplit(address).scheme == "https" or is_local(address))


def read(place: str | Path, largest: int, seconds: float = ANSWER_SECONDS) -> bytes:
    """The content at an http(s) address, or of a file, of at most `largest` bytes.

    Raises:
        TooLongError: it is longer.
        OSError: the server does not answer, or the address or the path is none.
    """
    try:
        with place.open("rb") if isinstance(place, Path) else urlopen(place, None, seconds) as file:
            content: bytes = file.read(largest + 1)
    except (HTTPException, ValueError) as error:  # a server, an address or a path that is none
        raise OSError(f"{place}: {error}") from error
    if len(content) > largest:
        raise TooLongError(f"{place} is longer than {largest:,} bytes")
    return content


def download(
    address: str, path: Path, sha256: str, report: Report | None = None, largest: int | None = None
) -> None:
    """Fetch a file whose SHA-256 is known.

    What has arrived is kept beside `path`, under a name made of the sum, and the next call asks
    for the rest only; a server that cannot give a part sends all of it again.

    Args:
        path: where the whole file goes, replaced at once.
        sha256: in hexadecimal.
        report: told the percentage whenever it changes.
        largest: bytes that it can have; None: any number.

    Raises:
        WrongSumError: the sum differs; what was downloaded is removed.
        TooLongError: there are more than `largest` bytes; what was downloaded is removed.
        OSError: the server does not answer, or stopped answering too often.
    """
    part = path.with_name(f".{sha256[:16]}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    tell = _Percent(report)
    for attempt in range(ATTEMPTS):
        try:
            _fetch_rest(address, part, tell, largest)
            break
        except HTTPError:
            raise
        except TooLongError:
            part.unlink(missing_ok=True)
            raise
        except ValueError as error:
            raise OSError(f"{address}: {error}") from error
        except (OSError, HTTPException) as error:
            if attempt == ATTEMPTS - 1:
                raise OSError(f"{address} broke off: {error}") from error
            time.sleep(PAUSE_SECONDS * 2**attempt)
    if atomic.sha256(part) != sha256.lower():
        part.unlink()
        raise WrongSumError(f"{address} is not what the list says: its SHA-256 differs")
    part.replace(path)


def _fetch_rest(address: str, part: Path, tell: "_Percent", largest: int | None) -> None:
    there = part.stat().st_size if part.exists() else 0
    request = Request(address, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        with urlopen(request, timeout=ANSWER_SECONDS) as answer:
            goes_on = answer.status == _PARTIAL
            length = answer.headers.get("Content-Length")
            start = there if goes_on else 0
            total = start + int(length) if length else None
            with part.open("ab" if goes_on else "wb") as file:
                _copy(answer, file, start, total, tell, largest)
    except HTTPError as error:
        if error.code != _OUT_OF_RANGE or not there:  # 416: nothing is left to send
            raise


def _copy(
    answer: BinaryIO,
    file: BinaryIO,
    size: int,
    total: int | None,
    tell: "_Percent",
    largest: int | None,
) -> None:
    while content := answer.read(_CHUNK):
        size += len(content)
        if largest is not None and size > largest:
            raise TooLongError(f"more than {largest:,} bytes came")
        file.write(content)
        tell(size, total)
    if total is not None and size < total:
        raise ConnectionError(f"{size:,} of {total:,} bytes came")


class _Percent:
    """Reports a share when its percentage changes."""

    def __init__(self, report: Report | None) -> None:
        self._report, self._last = report, -1

    def __call__(self, size: int, total: int | None) -> None:
        if self._report is None or not total:
            return
        percent = min(100, 100 * size // total)
        if percent != self._last:
            self._last = percent
            self._report(percent)
