"""The host's HTTP interface.

    GET  /round                  the number of the open round, and whether the run is over
    GET  /files/SHA256           a file
    GET  /names/FOLDER/NAME      the SHA-256 of the file with that name
    GET  /names/checkpoints      the names of the checkpoints, as of `verdicts/NUMBER`
    PUT  /payloads  /verdicts  /reports
                                a signed file of a volunteer, its grant in `Training-Grant`

No answer to an upload shows what was sent.
"""

import asyncio
import re
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from training.sparse import payload, report, verdict
from training.sparse.host import Host, NotTakenError
from training.sparse.store import StoreError

GRANT_HEADER = "Training-Grant"
BODY_SECONDS = 900.0  # of an upload: 3.5 MB at 32 kbit/s
LISTED = re.compile(r"checkpoints|verdicts/\d{9}")  # folders of names that are listed


def make_service(host: Host) -> Starlette:
    """Make the application that volunteers talk to."""
    most_payload = payload.most_bytes(host.swarm.layout)

    def describe(_request: Request) -> Response:
        return JSONResponse(host.describe())

    async def put_payload(request: Request) -> Response:
        return await _put(request, most_payload, host.take_payload)

    async def put_verdict(request: Request) -> Response:
        return await _put(request, verdict.MOST_BYTES, host.take_verdict)

    async def put_report(request: Request) -> Response:
        return await _put(request, report.MOST_BYTES, host.take_report)

    def get_file(request: Request) -> Response:
        path = host.store.path_of(request.path_params["sha256"])
        if path is None:
            return _problem(404, "there is no such file")
        host.note_download(path.stat().st_size)
        return FileResponse(path, media_type="application/octet-stream")

    def get_name(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            if LISTED.fullmatch(name):
                return JSONResponse(host.store.names(name))
            sha256 = host.store.find(name)
        except StoreError as error:
            return _problem(404, str(error))
        return _problem(404, "there is no such name") if sha256 is None else _plain(sha256)

    return Starlette(
        routes=[
            Route("/round", describe),
            Route("/files/{sha256}", get_file),
            Route("/names/{name:path}", get_name),
            Route("/payloads", put_payload, methods=["PUT"]),
            Route("/verdicts", put_verdict, methods=["PUT"]),
            Route("/reports", put_report, methods=["PUT"]),
        ]
    )


class _TooLongError(Exception):
    """The body is longer than allowed."""


async def _put(request: Request, most: int, take: Callable[[bytes, bytes], object]) -> Response:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            content = await _read(request, most)
    except _TooLongError:
        return _problem(413, f"more than {most:,} bytes")
    except TimeoutError:
        return _problem(408, f"it must arrive within {BODY_SECONDS:.0f} s")
    except ClientDisconnect:
        return _problem(400, "it did not arrive whole")
    token = request.headers.get(GRANT_HEADER, "").encode("latin-1")
    try:
        await run_in_threadpool(take, content, token)
    except NotTakenError as error:
        return _problem(403 if error.is_forbidden else 409, str(error))
    return Response(status_code=204)


async def _read(request: Request, most: int) -> bytes:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > most:
            raise _TooLongError
    return bytes(content)


def _plain(text: str) -> Response:
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


def _problem(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)
