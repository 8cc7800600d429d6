"""The bytes that a first visit to the calculator's page sends, by kind, raw and gzipped."""

import gzip
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Request

from benchmarks.chromium import ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table
from tools.website import SITE


def run(_quick: bool) -> Table:
    """Watch every request until Python has answered."""
    asked: set[str] = set()

    def remember(request: Request) -> None:
        asked.add(urlsplit(request.url).path)

    with site_with_bare_pages() as address, fresh_visit() as visit:
        visit.page.context.on("request", remember)
        visit.page.set_default_timeout(60_000)
        visit.page.goto(f"{address}calculator/")
        visit.page.wait_for_selector(ANSWERED)
        visit.page.wait_for_load_state("networkidle")
    sizes: dict[str, tuple[int, int]] = {}
    for path in sorted(asked):
        content = _file(path).read_bytes()
        raw, zipped = sizes.get(_kind(path), (0, 0))
        # What is compressed already is sent as it is.
        smallest = min(len(content), len(gzip.compress(content, 9, mtime=0)))
        sizes[_kind(path)] = (raw + len(content), zipped + smallest)
    sizes["everything"] = (
        sum(raw for raw, _ in sizes.values()),
        sum(zipped for _, zipped in sizes.values()),
    )
    return Table(
        f"Bytes of a first visit to the calculator's page ({len(asked)} requests)",
        [
            figure
            for kind, (raw, zipped) in sizes.items()
            for figure in (
                Figure(f"{kind}: raw", raw, "bytes"),
                Figure(f"{kind}: gzip", zipped, "bytes"),
            )
        ],
    )


def _file(path: str) -> Path:
    file = SITE / path.lstrip("/")
    return file / "index.html" if file.is_dir() else file


def _kind(path: str) -> str:
    match Path(path):
        case Path(name="python_stdlib_bytecode.zip" | "python_stdlib.zip"):
            return "Python's library"
        case Path(name="calculator.zip"):
            return "calculator"
        case Path(parent=Path(name=folder)) if folder.startswith("pyodide-"):
            return "Python's runtime"
        case _:
            return "page, styles, scripts, fonts"
