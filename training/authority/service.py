"""The authority's HTTP interface; ``/openapi.json`` describes it.

No error shows a token: values in errors are searched for it, and what goes wrong inside is
answered with a status and no trace.
"""

import logging
import re
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calculator.errors import InputError
from training.access import grants
from training.access.causes import AccessRefusedError, Cause
from training.access.tokens import Token
from training.authority.admission import Admissions, RateLimitedError
from training.authority.books import Decision
from training.authority.buckets import Buckets, Rate
from training.authority.hub import HubUnreachableError
from training.authority.limits import BodyLimit
from training.authority.messages import (
    AccessAnswer,
    AccessRequest,
    Description,
    ProblemAnswer,
    problem,
)

logger = logging.getLogger(__name__)

ADDRESS_RATE = Rate(burst=60, per_second=1.0)  # many volunteers of a notebook service share one
LONGEST_VALUE = 100
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

_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemAnswer, "description": description}
    for status, description in {
        401: "token-missing, token-invalid",
        403: "not-a-member, not-allowed, banned",
        404: "wrong-run: this authority serves another run or organisation",
        409: "key-in-use: the account takes part with another device",
        408: "bad-request: the body came too slowly",
        413: "bad-request: the body is too long",
        422: "bad-request: `field`, `value` and `rule` say what is not as it must be",
        429: "rate-limited: `Retry-After` says how many seconds to wait",
        502: "hub-unreachable: the Hub's answer was not understood",
        503: "hub-unreachable: the Hub does not answer",
    }.items()
}

_bearer = HTTPBearer(
    auto_error=False, description="A Hugging Face token of the type 'read'", bearerFormat="hf_..."
)
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def make_service(admissions: Admissions, address_rate: Rate = ADDRESS_RATE) -> FastAPI:
    """Make the application that volunteers talk to."""

    @asynccontextmanager
    async def lifespan(_service: FastAPI) -> AsyncIterator[None]:
        yield
        await admissions.hub.close()

    policy = admissions.policy
    service = FastAPI(
        title=f"Authority of the run {policy.run}",
        description="Admits the members of a Hugging Face organisation to a training run, for "
        f"{policy.lifetime} seconds at a time. Tokens are passed on to the Hub and not kept.",
        version="1",
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    service.add_middleware(BodyLimit)
    service.add_middleware(NoTrace)
    _handle_errors(service)
    limit = Depends(make_limit(admissions, Buckets(address_rate)))

    @service.get("/", summary="What this authority serves", tags=["access"])
    async def describe() -> Description:
        return Description(
            run=policy.run,
            organisation=policy.organisation,
            allowlist=policy.allowlist,
            lifetime=policy.lifetime,
            authority_key=grants.public_key_text(admissions.key),
            time=time.time(),
        )

    @service.put(
        "/access",
        summary="Ask for access, or renew it",
        responses=_RESPONSES,
        tags=["access"],
        dependencies=[limit],
    )
    async def access(wanted: AccessRequest, credentials: Credentials) -> AccessAnswer:
        """Check the token with the Hub and sign a grant for the peer's key."""
        token = Token(credentials.credentials) if credentials else None
        grant = await admissions.admit(wanted, token)
        return AccessAnswer(
            username=grant.username,
            peer_id=grant.peer_id,
            expires=grant.expires_at,
            grant=grant.to_bytes().decode(),
            authority_key=grants.public_key_text(admissions.key),
            time=time.time(),
        )

    return service


def make_limit(admissions: Admissions, addresses: Buckets) -> Callable[[Request], Awaitable[None]]:
    """Make what looks at how often an address asks."""

    async def limit(request: Request) -> None:
        address = request.client.host if request.client else ""
        taken = addresses.take(address)
        if taken.is_news:  # once, lest a flood of requests fill the disk
            admissions.books.note("", "", Decision.REFUSED, Cause.RATE_LIMITED)
        if taken.wait > 0:
            raise RateLimitedError(taken.wait)

    return limit


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
                await _answer(500, body)(scope, receive, send)


def _handle_errors(service: FastAPI) -> None:
    """Answer every error with the same model."""

    @service.exception_handler(AccessRefusedError)
    async def refused(_request: Request, error: AccessRefusedError) -> JSONResponse:
        headers = {}
        match error:
            case RateLimitedError():
                status, headers = 429, {"Retry-After": f"{error.wait:.0f}"}
            case HubUnreachableError():
                status = 502 if error.answered else 503
            case _:
                status = _STATUS[error.cause]
        if status == 401:
            headers = {"WWW-Authenticate": "Bearer"}
        return _answer(status, problem(error.cause, error.detail), headers)

    @service.exception_handler(InputError)
    async def bad_field(request: Request, error: InputError) -> JSONResponse:
        return _bad_input(request, error.field, error.value, error.rule)

    @service.exception_handler(RequestValidationError)
    async def bad_body(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
        return _bad_input(request, field, first.get("input"), first["msg"])

    @service.exception_handler(HTTPException)
    async def bad_address(request: Request, error: HTTPException) -> JSONResponse:
        rule = f"{error.detail}: there are GET / and PUT /access"
        asked = f"{request.method} {request.url.path}"
        return _bad_input(request, "request", asked, rule, error.status_code)


def _bad_input(
    request: Request, field: str, value: object, rule: str, status: int = 422
) -> JSONResponse:
    shown = _without_token(str(value), request)
    detail = f"{field}: {rule}"
    return _answer(status, problem(Cause.BAD_REQUEST, detail, field=field, value=shown, rule=rule))


def _without_token(text: str, request: Request) -> str:
    """Cut a value short, and take out of it whatever is or looks like a token."""
    sent = request.headers.get("authorization", "").rpartition(" ")[2]
    if sent and sent in text:
        text = text.replace(sent, "(hidden)")
    text = _TOKEN.sub("(hidden)", text)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _answer(
    status: int, body: ProblemAnswer, headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(body.model_dump(mode="json", exclude_none=True), status, headers)
