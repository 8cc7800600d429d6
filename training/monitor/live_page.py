"""A run's live page on this machine: the built site, with the run's own live data in it."""

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from training.monitor.web_host import WebHost

SITE = Path(__file__).parents[2] / "site"  # of a copy of the source that was built


class LivePage:
    """Serves the page until it is closed; without a built site, the live data alone.

    Attributes:
        address: of the page, or of the data.
        has_page: whether there is a built site.

    Args:
        live: folder of the live data, which may be made later.
        site: a built site.

    Raises:
        InputError: the port is taken.
    """

    def __init__(
        self, name: str, title: str, live: Path, port: int = 0, site: Path | None = None
    ) -> None:
        live.mkdir(parents=True, exist_ok=True)
        site = SITE if site is None else site
        self.has_page = is_built(site)
        routes = page_routes(name, title, live, site)
        self._host = WebHost(Starlette(routes=routes), "127.0.0.1", port)
        query = f"?run={name}" if self.has_page else f"{name}/"
        self.address = f"{self._host.address}/live/{query}"

    def describe(self) -> str:
        """A line for the terminal."""
        if self.has_page:
            return f"live page: {self.address}"
        how = "`python3 build.py build` in the source makes the page; start this there"
        return f"live data: {self.address}run.json (to see it as a page: {how})"

    def close(self) -> None:
        """End the server."""
        self._host.close()


def is_built(site: Path) -> bool:
    """True for a built site."""
    return (site / "live" / "index.html").is_file()


def page_routes(name: str, title: str, live: Path, site: Path) -> list[BaseRoute]:
    """The live data of a run, and the pages of a built site that show it alone."""

    def list_runs(_request: Request) -> Response:
        return JSONResponse({"runs": [{"name": name, "title": title, "note": ""}]})

    data = Mount(f"/live/{name}", _Fresh(directory=live))
    if not is_built(site):
        return [data]
    pages = Mount("/", _Fresh(directory=site, html=True))
    return [Route("/live/runs.json", list_runs), data, pages]


class _Fresh(StaticFiles):
    """Files that a browser asks for again each time."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The answer to a request; nothing can be sent here."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        return await super().get_response(path, scope)

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """The answer with a file."""
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response
