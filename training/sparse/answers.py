"""Answers of web servers: read up to a length, their failures in plain words."""

import json
import re
from typing import Any

import httpx

from training.sparse.store import StoreError


def the_rest(begun: bytearray | None) -> dict[str, str]:
    """The header that asks for what has not come yet of a file."""
    return {"Range": f"bytes={len(begun)}-"} if begun else {}


def read(
    answer: httpx.Response, most_bytes: int, what: str, begun: bytearray | None = None
) -> bytes:
    """The body of an answer.

    Args:
        begun: its bytes from before a connection broke; grows, and is then the whole.

    Raises:
        StoreError: it has more than `most_bytes` bytes.
    """
    content = bytearray() if begun is None else begun
    if answer.status_code != httpx.codes.PARTIAL_CONTENT:
        content.clear()
    for piece in answer.iter_raw():
        content += piece
        if len(content) > most_bytes:
            content.clear()
            raise StoreError(f"{what[:20]} has more than {most_bytes:,} bytes")
    return bytes(content)


def parse(content: bytes) -> Any:
    """The value in an answer in JSON.

    Raises:
        StoreError: it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreError("the host's answer is no JSON") from error


def printable(text: str) -> str:
    """Text from another machine, shortened and without characters that would steer a terminal."""
    return re.sub(r"[^\x20-\x7e]", " ", text)[:300]


def in_words(error: Exception, address: str) -> str:
    """The reason why there was no answer; `address` is shown, so it must hold no secret."""
    if isinstance(error, httpx.TimeoutException):
        return f"{address} did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {address}"
    return f"{address}: {type(error).__name__}"
