"""The built pages' links: those inside the site lead somewhere, those outside are well-formed."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ADDRESSES = {
    "a": "href", "img": "src", "link": "href", "script": "src", "source": "src", "use": "href",
}  # fmt: skip
PLACES = ("id", "name")


class Page(HTMLParser):
    """A page's links, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and places of one element."""
        for name, value in attrs:
            if value is None:
                continue
            if name in PLACES:
                self.places.add(value)
            if name == ADDRESSES.get(tag):
                self.addresses.append(value)


def broken_links(site: Path, base: str = "/") -> list[str]:
    """One line for each link that leads nowhere; `base` is the path the site will live under.

    Pages use relative addresses; 404.html, which is shown for any address, starts at `base`.
    """
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {address}: {problem}"
        for path, page in pages.items()
        for address in sorted(set(page.addresses))
        for problem in _problems(address, path, site, base, pages)
    ]


def _problems(
    address: str, page: Path, site: Path, base: str, pages: dict[Path, Page]
) -> Iterator[str]:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        yield f"is no address: {error}"
        return
    if parts.scheme in ("data", "mailto", "blob"):
        return
    if parts.scheme or parts.netloc:
        yield from _foreign(parts.scheme, parts.hostname or "", address)
        return
    target = _file(unquote(parts.path), page, site, base)
    if not target.is_file():
        yield "leads to no file of the site"
    elif target in pages and unquote(parts.fragment) not in {"", *pages[target].places}:
        yield "leads to no place of that page"


def _foreign(scheme: str, host: str, address: str) -> Iterator[str]:
    if scheme not in ("https", "http"):
        yield "has a scheme that is neither https nor http"
    elif ("." not in host and host != "localhost") or any(letter.isspace() for letter in address):
        yield "is not a well-formed address"


def _file(path: str, page: Path, site: Path, base: str) -> Path:
    """The file that a static host would show."""
    if not path:
        return page
    root = site / path.removeprefix(base) if path.startswith("/") else page.parent / path
    found = root.resolve()
    return found / "index.html" if found.is_dir() else found
