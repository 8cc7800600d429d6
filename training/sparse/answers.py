"""Answers of web servers, read up to a length."""

from typing import TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from training.sparse.store import StoreError

T = TypeVar("T")


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


def parse(content: bytes, kind: type[T], rule: str) -> T:
    """The value of a type that an answer in JSON describes.

    Raises:
        StoreError: with the rule, when it describes none.
    """
    try:
        return TypeAdapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise StoreError(rule) from error
