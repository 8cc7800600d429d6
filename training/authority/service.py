"""The authority's HTTP interface: GET / describes it, PUT /access admits a peer.

No error shows a token: values in errors are searched for it, and what goes wrong inside is
answered with a status and no trace.
"""

import logging
import re
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calculator.errors import InputError
from training.access import grants
from training.access.causes import EXPLANATIONS, AccessRefusedError, Cause
from training.access.limits import Buckets, Rate, read_body
from training.access.tokens import Token
from training.authority.admission import AccessRequest, Admissions, RateLimitedError
from training.authority.books import Decision
from training.authority.hub import HubUnreachableError

logger = logging.getLogger(__name__)

ADDRESS_RATE = Rate(burst=60, per_second=1.0)  # many volunteers of a notebook service share one
LONGEST_VALUE = 100
LARGEST_BODY = 16 * 1024
BODY_SECONDS = 10.0
_TOKEN = re.compile(r"hf_\w+|[Bb]earer\s+\S+")

_STATUS = {
    Cause.TOKEN_MISSING: 401,
    Cause.TOKEN_INVALID: 401,
    Cause.NOT_A_MEMBER: 403,
    Cause.NOT_ALLOWED: 403,
    Cause.BANNED: 403,
    Cause.WRONG_RUN: 404,
    Cause.KEY_IN_USE: 409,
    Cause.RATE_LIMITED: 429,
}


def make_service(admissions: Admissions, address_rate: Rate = ADDRESS_RATE) -> Starlette:
    """Make the application that volunteers talk to."""
    policy, addresses = admissions.policy, Buckets(address_rate)

    @asynccontextmanager
    async def lifespan(_service: Starlette) -> AsyncIterator[None]:
        yield
        await admissions.hub.close()

    async def describe(_request: Request) -> JSONResponse:
        own = {"authority_key": grants.public_key_text(admissions.key), "time": time.time()}
        return JSONResponse(asdict(policy) | own)

    async def access(request: Request) -> JSONResponse:
        """Check the token with the Hub and sign a grant for the peer's key."""
        _limit(request, admissions, addresses)
        body = await read_body(request, LARGEST_BODY, BODY_SECONDS)
        try:
            wanted = AccessRequest.model_validate_json(body)
        except ValidationError as error:
            return _bad_body(request, error)
        grant = await admissions.admit(wanted, _token(request))
        return JSONResponse(
            {
                "username": grant.username,
                "peer_id": grant.peer_id,
                "expires": grant.expires_at,
                "grant": grant.to_bytes().decode(),
                "authority_key": grants.public_key_text(admissions.key),
                "time": time.time(),
            }
        )

    return Starlette(
        routes=[Route("/", describe), Route("/access", access, methods=["PUT"])],
        middleware=[Middleware(NoTrace)],
        exception_handlers=dict.fromkeys((AccessRefusedError, InputError, HTTPException), _explain),
        lifespan=lifespan,
    )


def _limit(request: Request, admissions: Admissions, addresses: Buckets) -> None:
    """Look at how often an address asks."""
    taken = addresses.take(request.client.host if request.client else "")
    if taken.is_news:  # once, lest a flood of requests fill the disk
        admissions.books.note("", "", Decision.REFUSED, Cause.RATE_LIMITED)
    if taken.wait > 0:
        raise RateLimitedError(taken.wait)


def _token(request: Request) -> Token | None:
    """The token in the header ``Authorization: Bearer TOKEN``."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return Token(token.strip()) if scheme.lower() == "bearer" and token.strip() else None


class NoTrace:
    """Answers what goes wrong inside with a status; the log tells where it happened."""

    def __init__(self, application: ASGIApp) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an exception's text may hold what was sent, so it is not shown."""
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.application(scope, receive, watch)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = type(error).__name__
            logger.error("an answer failed: %s at %s:%s", name, place.filename, place.lineno)  # noqa: TRY400
            if not begun and scope["type"] == "http":
                body = problem(Cause.BAD_REQUEST, "the authority itself failed")
                await JSONResponse(body, 500)(scope, receive, send)


def problem(cause: Cause, detail: str = "", **input_error: str) -> dict[str, Any]:
    """The body of every answer that is not 200; `input_error` are `field`, `value` and `rule`."""
    explanation = EXPLANATIONS[cause]
    told = {"cause": cause.value, "message": explanation.meaning, "fix": explanation.fix}
    return {"error": told | {"detail": detail} | input_error}


async def _explain(request: Request, error: Exception) -> JSONResponse:
    """Answer every error with the same model."""
    match error:
        case RateLimitedError():
            headers = {"Retry-After": f"{error.wait:.0f}"}
            return JSONResponse(problem(error.cause, error.detail), 429, headers)
        case HubUnreachableError():
            return JSONResponse(problem(error.cause, error.detail), 502 if error.answered else 503)
        case AccessRefusedError():
            status = _STATUS[error.cause]
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return JSONResponse(problem(error.cause, error.detail), status, headers)
        case InputError():
            return _bad_input(request, error.field, error.value, error.rule)
        case HTTPException(status_code=400 | 408 | 413):
            body = problem(
                Cause.BAD_REQUEST, f"body: {error.detail}", field="body", rule=error.detail
            )
            return JSONResponse(body, error.status_code, error.headers)
        case HTTPException():
            rule = f"{error.detail}: there are GET / and PUT /access"
            asked = f"{request.method} {request.url.path}"
            return _bad_input(request, "request", asked, rule, error.status_code)
    raise error


def _bad_body(request: Request, error: ValidationError) -> JSONResponse:
    """Name the first invalid field."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"])) or "body"
    return _bad_input(request, field, first["input"], first["msg"])


def _bad_input(
    request: Request, field: str, value: object, rule: str, status: int = 422
) -> JSONResponse:
    shown = _without_token(str(value), request)
    detail = f"{field}: {rule}"
    body = problem(Cause.BAD_REQUEST, detail, field=field, value=shown, rule=rule)
    return JSONResponse(body, status)


def _without_token(text: str, request: Request) -> str:
    """Cut a value short, and take out of it whatever is or looks like a token."""
    sent = request.headers.get("authorization", "").rpartition(" ")[2]
    if sent and sent in text:
        text = text.replace(sent, "(hidden)")
    text = _TOKEN.sub("(hidden)", text)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
