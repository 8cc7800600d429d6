"""Bodies of requests: one that is too long or too slow is cut off."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

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
