"""The built pages' links: those inside the site lead somewhere, those outside are well-formed."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ADDRESSES = {
    "a": "href", "img": "src", "link": "href", "script": "src", "source": "src", "use": "href",
}  # fmt: skip
Element = tuple[str, dict[str, str]]


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[Element] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def elements(page: str) -> list[Element]:
    """The elements of a page's HTML: the tag and the attributes of each."""
    return _Elements(page).found


def broken_links(site: Path, base: str = "/") -> list[str]:
    """One line for each link that leads nowhere; `base` is the path the site will live under.

    Pages use relative addresses; 404.html, which is shown for any address, starts at `base`.
    """
    pages = {path: elements(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    places = {
        path: {given[name] for _, given in page for name in ("id", "name") if name in given}
        for path, page in pages.items()
    }
    return [
        f"{path.relative_to(site)}: {address}: {problem}"
        for path, page in pages.items()
        for address in sorted(
            {given[ADDRESSES[tag]] for tag, given in page if ADDRESSES.get(tag) in given}
        )
        for problem in _problems(address, path, site, base, places)
    ]


def _problems(
    address: str, page: Path, site: Path, base: str, places: dict[Path, set[str]]
) -> Iterator[str]:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        yield f"is no address: {error}"
        return
    if parts.scheme in ("data", "mailto", "blob"):
        return
    if parts.scheme or parts.netloc:
        host = parts.hostname or ""
        if parts.scheme not in ("https", "http"):
            yield "has a scheme that is neither https nor http"
        elif ("." not in host and host != "localhost") or re.search(r"\s", address):
            yield "is not a well-formed address"
        return
    target = _file(unquote(parts.path), page, site, base)
    if not target.is_file():
        yield "leads to no file of the site"
    elif target in places and unquote(parts.fragment) not in {"", *places[target]}:
        yield "leads to no place of that page"


def _file(path: str, page: Path, site: Path, base: str) -> Path:
    """The file that a static host would show."""
    if not path:
        return page
    root = site / path.removeprefix(base) if path.startswith("/") else page.parent / path
    found = root.resolve()
    return found / "index.html" if found.is_dir() else found
