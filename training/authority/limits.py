"""Limits on the length and time of a request: one that is too long or too slow is cut off."""

import asyncio
import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 16 * 1024
BODY_SECONDS = 10.0


class _TooLongError(Exception):
    """The body is longer than allowed."""


class BodyLimit:
    """Reads each request's body before the application does, up to a size and for a time."""

    def __init__(self, application: ASGIApp) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body, or answer 413 or 408."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(receive)
        except _TooLongError:
            await _refuse(send, 413, "body", f"must have at most {LARGEST_BODY} bytes")
            return
        except TimeoutError:
            await _refuse(send, 408, "body", f"must arrive within {BODY_SECONDS:.0f} s")
            return
        if body is None:
            return  # the other end has gone

        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.application(scope, replay, send)


async def _read(receive: Receive) -> bytes | None:
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise _TooLongError
        if not message.get("more_body", False):
            return body


async def _refuse(send: Send, status: int, field: str, rule: str) -> None:
    error = {"cause": "bad-request", "detail": f"{field}: {rule}", "field": field, "rule": rule}
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})
