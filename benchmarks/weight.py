"""Requests and bytes of every page's first visit: the page's own, and what is kept for offline.

Requests are counted where they arrive, at the server. The service worker's script is asked for once
the page rests; what comes after it is kept for a visit without a network. Bytes are those of the
files compressed by gzip, as every host can.
"""

import gzip
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser

from benchmarks.chromium import ANSWERED, fresh_visit
from benchmarks.figures import Figure, Table
from calculator.catalog import MODELS
from tests.browser.visits import Visit
from tests.browser.written_run import LiveServer
from tools.versions import WORKER, folder_of
from tools.website import SITE

MOST_REQUESTS = 20
MOST_CALCULATOR_BYTES = 5_000_000
MOST_BYTES_BEFORE_VERDICT = 400_000
CALCULATOR = "calculator/"
KEPT = "html[data-kept]"
PATIENCE_MS = 120_000
AT_ONCE = 6


def run(quick: bool) -> Table:
    """Visit every page, or only four, in a browser that has seen nothing before."""
    paths = ["", CALCULATOR, "join/", "live/"] if quick else addresses(SITE)
    asked: dict[str, list[str]] = {}
    with fresh_visit() as visit:
        for start in range(0, len(paths), AT_ONCE):
            asked |= _visits(visit.browser, paths[start : start + AT_ONCE])
    first = {path: _before_worker(found) for path, found in asked.items()}
    most = max(len(found) for found in first.values())
    figures = [Figure("requests of the page that makes the most", most, "", MOST_REQUESTS)]
    size = compressed_size(first[CALCULATOR])
    figures.append(Figure("calculator's page: gzip", size, "bytes", MOST_CALCULATOR_BYTES))
    size = compressed_size(_asked_before_verdict())
    title = "calculator's page, before any model's default verdict: gzip"
    figures.append(Figure(title, size, "bytes", MOST_BYTES_BEFORE_VERDICT))
    for path, found in first.items():
        kept = asked[path][len(found) :]
        for title, paths in ((path or "home", found), (f"{path or 'home'}, to keep", kept)):
            figures.append(Figure(f"{title}: requests", len(paths), ""))
            figures.append(Figure(f"{title}: gzip", compressed_size(paths), "bytes"))
    return Table("First visits, with the service worker", figures)


def _before_worker(asked: list[str]) -> list[str]:
    """Addresses asked for before the service worker, which comes once the page rests."""
    return asked[: asked.index(f"/{WORKER}")]


def addresses(site: Path) -> list[str]:
    """The addresses of all pages, relative to the site's own."""
    folders = (page.parent.relative_to(site).as_posix() for page in site.rglob("index.html"))
    return sorted("" if folder == "." else f"{folder}/" for folder in folders)


def compressed_size(paths: Iterable[str]) -> int:
    """The bytes of what the server was asked for; what does not get smaller is sent as it is."""
    return sum(_compressed_size(urlsplit(path).path) for path in paths)


@cache
def _compressed_size(path: str) -> int:
    file = SITE / unquote(path).lstrip("/")
    if file.is_dir():
        file /= "index.html"
    content = file.read_bytes()
    return min(len(content), len(gzip.compress(content, 9, mtime=0)))


def _visits(browser: Browser, paths: list[str]) -> dict[str, list[str]]:
    """Paths that servers are asked for until each page and all that it loaded is kept.

    A page mostly waits before it keeps anything, so several are open at once, each as a visitor
    of its own at a server of its own.
    """
    with ExitStack() as stack:
        open_pages = {}
        for path in paths:
            server = LiveServer(SITE)
            server.start()
            stack.callback(server.stop)
            context = stack.enter_context(browser.new_context())
            context.set_default_timeout(PATIENCE_MS)
            visitor = Visit(context.new_page(), server.address)
            visitor.open(path)
            open_pages[path] = (visitor, server)
        for path, (visitor, _) in open_pages.items():
            if path == CALCULATOR:
                visitor.page.wait_for_selector(ANSWERED)
            visitor.page.wait_for_selector(KEPT, state="attached")
            visitor.rest()
        return {
            path: [asked for asked, _ in server.asked] for path, (_, server) in open_pages.items()
        }


def _asked_before_verdict() -> list[str]:
    """Paths that a visit to a catalog model asks for until its verdict stands, without Python.

    The model is the one with the largest file of figures.
    """
    files = (folder_of(SITE, "assets") / "first").glob("*.json")
    first = max((file for file in files if file.stem in MODELS), key=_size)
    server = LiveServer(SITE)
    server.start()
    try:
        with fresh_visit() as visit:
            visit.page.set_default_timeout(PATIENCE_MS)
            visit.page.route("**/worker.js", lambda route: route.abort())
            visit.page.goto(f"{server.address}{CALCULATOR}?model={first.stem}")
            visit.page.wait_for_selector(ANSWERED)
    finally:
        server.stop()
    return [asked for asked, _ in server.asked]


def _size(path: Path) -> int:
    return path.stat().st_size
