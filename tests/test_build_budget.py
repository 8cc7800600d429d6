"""Limits on what a page loads before anyone touches it.

Counted is what the page's own text asks for; tools/bundle.py names there the modules that its
scripts import. Each file counts once, compressed as every host can. Fonts that the styles ask for,
live data and Python come later: `build.py bench weight` and the browser tests count every request.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tools.links import elements

MOST_FILES, MOST_BYTES = 14, 230_000
LOADED = {"stylesheet", "icon", "preload", "modulepreload"}


def test_no_page_loads_more_than_14_files_and_230_kilobytes(site: Path) -> None:
    weights: dict[Path, int] = {}
    for page in sorted(site.rglob("*.html")):
        base = site if page.name == "404.html" else page.parent
        own = (base / unquote(address).lstrip("/") for address in asked_for(page))
        files = [page, *dict.fromkeys(path.resolve() for path in own)]
        for path in set(files) - weights.keys():
            content = path.read_bytes()
            weights[path] = min(len(content), len(gzip.compress(content, 9, mtime=0)))
        sizes = {path: weights[path] for path in files}
        assert 2 < len(files) <= MOST_FILES, sizes
        assert sum(sizes.values()) <= MOST_BYTES, sizes


def asked_for(page: Path) -> Iterator[str]:
    """Addresses of the site that a page loads without being touched."""
    for tag, given in elements(page.read_text("utf-8")):
        match tag:
            case "link" if LOADED & set(given.get("rel", "").split()):
                address = given["href"]
            case "script" if "src" in given:
                address = given["src"]
            case "img" if given.get("loading") != "lazy":
                address = given["src"]
            case _:
                continue
        if not address.startswith("data:"):
            yield address
