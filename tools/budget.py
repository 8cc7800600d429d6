"""Limits on what a page loads before anyone touches it: above them, the build fails.

Counted is what the page's own text asks for, with the modules that its scripts import: each file
once, compressed as every host can (gzip). Fonts that the styles ask for, live data and Python come
later; `build.py bench lighthouse` and the browser tests count every request.
"""

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools.console import BuildError
from tools.links import elements

MOST_REQUESTS = 14
MOST_BYTES = 230_000

LOADED = {"stylesheet", "icon", "preload", "modulepreload"}
IMPORTED = re.compile(r"""\b(?:from|import)\s*["'](\.[^"']+)["']""")


def check_budget(site: Path) -> None:
    """Raise BuildError that names each page that loads too much, and its largest files."""
    if over := list(over_budget(site)):
        raise BuildError("Pages that load more than tools/budget.py allows:\n" + "\n".join(over))


def over_budget(
    site: Path, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES
) -> Iterator[str]:
    """One line for each page that loads more files or bytes than allowed."""
    weight = cache(_compressed_size)
    for page in sorted(site.rglob("*.html")):
        sizes = {path: weight(path) for path in loaded_files(page, site)}
        total = sum(sizes.values())
        if len(sizes) > most_requests or total > most_bytes:
            largest = sorted(sizes, key=lambda path: -sizes[path])[:5]
            names = ", ".join(f"{path.relative_to(site)} {sizes[path]:,}" for path in largest)
            yield (
                f"{page.relative_to(site)}: {len(sizes)} requests of {most_requests}, "
                f"{total:,} bytes of {most_bytes:,}; the largest: {names}"
            )


def loaded_files(page: Path, site: Path) -> list[Path]:
    """The files that `page` loads, itself in front, each once."""
    base = site if page == site / "404.html" else page.parent
    found = {page: None}
    for address in _addresses(page.read_text("utf-8")):
        parts = urlsplit(address)
        path = (base / unquote(parts.path).lstrip("/")).resolve()
        # a link that leads nowhere is found by tools/links.py
        if not parts.scheme and parts.path and path.is_file():
            before_it_runs = imported_by(path) if path.suffix == ".js" else ()
            found |= dict.fromkeys((path, *before_it_runs))
    return list(found)


def _addresses(page: str) -> Iterator[str]:
    """Addresses that a page loads without being touched."""
    for tag, given in elements(page):
        match tag:
            case "link" if LOADED & set(given.get("rel", "").split()):
                yield given.get("href", "")
            case "script":
                yield given.get("src", "")
            case "img" if given.get("loading") != "lazy":
                yield given.get("src", "")


def imported_by(script: Path) -> list[Path]:
    """The modules that a script needs before it runs, those that they need included."""
    found = [script]
    for module in found:
        for address in IMPORTED.findall(module.read_text("utf-8")):
            path = (module.parent / address).resolve()
            if path not in found and path.is_file():
                found.append(path)
    return found[1:]


def _compressed_size(path: Path) -> int:
    content = path.read_bytes()
    return min(len(content), len(gzip.compress(content, 9, mtime=0)))
