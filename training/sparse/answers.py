"""Answers of web servers, read up to a length."""

from typing import TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from training.sparse.store import StoreError

T = TypeVar("T")


class Begun(bytearray):
    """The bytes of a file on its way, from before a connection broke.

    Attributes:
        came: bytes that have come in all, also where a server sent some again.
    """

    came = 0


def the_rest(begun: Begun | None) -> dict[str, str]:
    """The header that asks for what has not come yet of a file."""
    return {"Range": f"bytes={len(begun)}-"} if begun else {}


def read(answer: httpx.Response, most_bytes: int, what: str, begun: Begun | None = None) -> bytes:
    """The body of an answer.

    Args:
        begun: what came before a connection broke; grows, and is then the whole.

    Raises:
        StoreError: it has more than `most_bytes` bytes.
    """
    content = Begun() if begun is None else begun
    if answer.status_code != httpx.codes.PARTIAL_CONTENT:
        content.clear()
    for piece in answer.iter_raw():
        content += piece
        content.came += len(piece)
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
