"""The host's HTTP interface.

    GET  /round                  the number of the open round, and whether the run is over
    GET  /files/SHA256           a file; where the run has an object store, perhaps an address there
    GET  /files/SHA256?from=host  the file itself in any case
    GET  /names/FOLDER/NAME      the SHA-256 of the file with that name
    GET  /names/checkpoints      the names of the checkpoints
    PUT  /payloads  /reports     a signed file of a volunteer, its grant in `Training-Grant`

No answer to an upload shows what was sent.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from starlette.applications import Starlette
from starlette.background import BackgroundTask
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

from training.access.limits import read_body
from training.sparse import catching_up, payload, report
from training.sparse.host import Host, NotTakenError
from training.sparse.object_store import StoredFolder
from training.sparse.store import StoreError

T = TypeVar("T")

GRANT_HEADER = "Training-Grant"
BODY_SECONDS = 900.0  # of an upload: 3.5 MB at 32 kbit/s
FROM_HOST = "from=host"


def make_service(
    host: Host, stored: StoredFolder | None = None, more: Sequence[BaseRoute] = ()
) -> Starlette:
    """Make the application that volunteers talk to.

    Args:
        stored: the host's folder, where the run has an object store.
        more: that the same address answers.
    """
    most_payload = payload.most_bytes(host.swarm.layout)

    def describe(_request: Request) -> Response:
        return JSONResponse(host.describe())

    async def put_payload(request: Request) -> Response:
        answer, sha256 = await _put(request, most_payload, host.take_payload)
        if stored is not None and sha256 is not None:
            answer.background = BackgroundTask(stored.keep, sha256)
        return answer

    async def put_report(request: Request) -> Response:
        return (await _put(request, report.MOST_BYTES, host.take_report))[0]

    def get_file(request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        path = host.store.path_of(sha256)
        if path is None:
            return _problem(404, "there is no such file")
        elsewhere = stored.address_of(sha256) if stored is not None else None
        if elsewhere is not None and request.url.query != FROM_HOST:
            return RedirectResponse(elsewhere, headers={"Cache-Control": "no-store"})
        is_checkpoint = host.is_checkpoint(sha256)
        return _CountedFile(path, partial(host.note_download, is_checkpoint=is_checkpoint))

    def get_name(request: Request) -> Response:
        return _find_name(host, request.path_params["name"])

    return Starlette(
        routes=[
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


async def _put(
    request: Request, most: int, take: Callable[[bytes, bytes], T]
) -> tuple[Response, T | None]:
    """The answer to an upload, and what `take` gave where it took it."""
    try:
        content = await read_body(request, most, BODY_SECONDS)
    except HTTPException as error:
        return _problem(error.status_code, f"it {error.detail}"), None
    token = request.headers.get(GRANT_HEADER, "").encode("latin-1")
    try:
        taken = await run_in_threadpool(take, content, token)
    except NotTakenError as error:
        return _problem(403 if error.is_forbidden else 409, str(error)), None
    return Response(status_code=204), taken


def _plain(text: str) -> Response:
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


def _problem(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
