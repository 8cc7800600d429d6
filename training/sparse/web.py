"""The host's HTTP interface.

    GET  /round                  the number of the open round, and whether the run is over
    GET  /files/SHA256           a file; where the run has an object store, perhaps an address there
    GET  /files/SHA256?from=host  the file itself in any case
    GET  /names/FOLDER/NAME      the SHA-256 of the file with that name
    GET  /names/checkpoints      the names of the checkpoints
    PUT  /payloads  /reports     a signed file of a volunteer, its grant in `Training-Grant`
    PUT  /uploads/SHA256?bytes=N  a payload's head: gives the permission to put it into the store
    PUT  /payloads/SHA256        without content: the payload is in the store

No answer to an upload shows what was sent.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from training.access.bodies import read_body
from training.sparse import catching_up, envelope, payload, report
from training.sparse.host import Host, NotTakenError
from training.sparse.store import StoreError, is_digest
from training.sparse.uploads import Uploads

GRANT_HEADER = "Training-Grant"
BODY_SECONDS = 900.0  # of an upload: 3.5 MB at 32 kbit/s
FROM_HOST = "from=host"
_LENGTH = re.compile(r"[0-9]{1,12}")


def make_service(
    host: Host, uploads: Uploads | None = None, more: Sequence[BaseRoute] = ()
) -> Starlette:
    """Make the application that volunteers talk to.

    Args:
        uploads: where the run has an object store.
        more: that the same address answers.
    """
    most_payload = payload.most_bytes(host.swarm.layout)

    def describe(_request: Request) -> Response:
        return JSONResponse(host.describe())

    async def put_payload(request: Request) -> Response:
        return await _put(request, most_payload, host.take_payload)

    async def put_report(request: Request) -> Response:
        return await _put(request, report.MOST_BYTES, host.take_report)

    def get_file(request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        path = host.store.path_of(sha256)
        if path is None:
            return _problem(404, "there is no such file")
        if (elsewhere := _find_elsewhere(uploads, request, sha256)) is not None:
            return elsewhere
        is_checkpoint = host.is_checkpoint(sha256)
        return _CountedFile(path, partial(host.note_download, is_checkpoint=is_checkpoint))

    def get_name(request: Request) -> Response:
        return _find_name(host, request.path_params["name"])

    return Starlette(
        routes=[
            *_through_store(uploads),
            Route("/round", describe),
            Route("/files/{sha256}", get_file),
            Route("/names/{name:path}", get_name),
            Route("/payloads", put_payload, methods=["PUT"]),
            Route("/reports", put_report, methods=["PUT"]),
            *more,
        ]
    )


class _CountedFile(FileResponse):
    """A file or the rest of one; `note` is told the bytes that are sent to its client.

    After the client has gone, a server takes what is sent and drops it.
    """

    def __init__(self, path: Path, note: Callable[[int], None]) -> None:
        super().__init__(path, media_type="application/octet-stream")
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)

        async def count(message: Message) -> None:
            if not await request.is_disconnected():
                self._note(len(message.get("body", b"")))
                await send(message)

        await super().__call__(scope, receive, count)


def _find_name(host: Host, name: str) -> Response:
    try:
        if name == catching_up.FOLDER:
            return JSONResponse(host.store.names(name))
        sha256 = host.store.find(name)
    except StoreError as error:
        return _problem(404, str(error))
    return _problem(404, "there is no such name") if sha256 is None else _plain(sha256)


def _find_elsewhere(uploads: Uploads | None, request: Request, sha256: str) -> Response | None:
    """The way to a file in the object store; None if it is not there, or wanted from here."""
    if uploads is None or request.url.query == FROM_HOST:
        return None
    address = uploads.address_of(sha256)
    if address is None:
        return None
    return RedirectResponse(address, headers={"Cache-Control": "no-store"})


def _through_store(uploads: Uploads | None) -> list[Route]:
    if uploads is None:
        return []

    async def permit(request: Request) -> Response:
        sha256, size = request.path_params["sha256"], request.query_params.get("bytes", "")

        def take(head: bytes, token: bytes) -> Response:
            permission = uploads.permit(sha256, int(size), head, token)
            return JSONResponse(asdict(permission), headers={"Cache-Control": "no-store"})

        if not (is_digest(sha256) and _LENGTH.fullmatch(size)):
            return _problem(404, "there is no such upload")
        return await _put(request, envelope.OVERHEAD_BYTES, take)

    async def put_stored(request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        return await _put(request, 0, lambda _content, token: uploads.take(sha256, token))

    return [
        Route("/uploads/{sha256}", permit, methods=["PUT"]),
        Route("/payloads/{sha256}", put_stored, methods=["PUT"]),
    ]


async def _put(request: Request, most: int, take: Callable[[bytes, bytes], object]) -> Response:
    try:
        content = await read_body(request, most, BODY_SECONDS)
    except HTTPException as error:
        return _problem(error.status_code, f"it {error.detail}")
    token = request.headers.get(GRANT_HEADER, "").encode("latin-1")
    try:
        found = await run_in_threadpool(take, content, token)
    except NotTakenError as error:
        return _problem(403 if error.is_forbidden else 409, str(error))
    except StoreError as error:
        return _problem(424, str(error))
    return found if isinstance(found, Response) else Response(status_code=204)


def _plain(text: str) -> Response:
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


def _problem(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
