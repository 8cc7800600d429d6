"""Limits on what strangers may send: how often, how much and how slowly."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MOST_NAMES = 10_000  # to remember, so that memory stays bounded


@dataclass(frozen=True)
class Rate:
    """So many requests at once, and so many a second in the long run."""

    burst: int
    per_second: float


@dataclass(frozen=True)
class Taken:
    """Result of an attempt.

    Attributes:
        wait: 0 when there was one to take, else the seconds until there will be.
        is_news: whether it is the first attempt in vain after one that was not.
    """

    wait: float
    is_news: bool


class Buckets:
    """A bucket a name; the ones that were not used for longest are forgotten.

    A bucket starts full. What is taken flows back steadily.
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._filled: OrderedDict[str, tuple[float, float, bool]] = OrderedDict()

    def take(self, name: str) -> Taken:
        """Take one from a name's bucket, if there is one."""
        now = time.monotonic()
        content, since, refused = self._filled.pop(name, (float(self.rate.burst), now, False))
        content = min(self.rate.burst, content + (now - since) * self.rate.per_second)
        allowed = content >= 1
        self._filled[name] = (content - 1 if allowed else content, now, not allowed)
        if len(self._filled) > MOST_NAMES:
            self._filled.popitem(last=False)
        wait = 0.0 if allowed else (1 - content) / self.rate.per_second
        return Taken(wait, is_news=not allowed and not refused)


_CLOSE = {"Connection": "close"}


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The body of a request, of at most `most` bytes, which must arrive in so many seconds.

    Raises:
        HTTPException: 413, 408, or 400 where the other end has gone.
    """
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                content += piece
                if len(content) > most:
                    raise HTTPException(413, f"must have at most {most:,} bytes", _CLOSE)
    except TimeoutError as error:
        raise HTTPException(408, f"must arrive within {seconds:.0f} s", _CLOSE) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "must arrive whole") from error
    return bytes(content)
