"""Answers of web servers: read up to a length, their failures in plain words."""

import json
import re
from typing import Any

import httpx

from training.sparse.store import StoreError


def read(answer: httpx.Response, most_bytes: int, what: str) -> bytes:
    """The body of an answer.

    Raises:
        StoreError: it has more than `most_bytes` bytes.
    """
    content = bytearray()
    for piece in answer.iter_raw():
        content += piece
        if len(content) > most_bytes:
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
