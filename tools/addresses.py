"""The site's own address: the whole of it where it is known, else what works under any path.

SITE_URL in the environment is the address that the site will be published at. Without it every
address in the pages is relative, also those of the sitemap, which instant navigation reads.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from tools.console import BuildError

WITHOUT_SITE_URL = (
    "  SITE_URL is not set. The site works under any path, but shared links show no picture,\n"
    "  search engines get no sitemap, and the page for wrong addresses expects the site at the\n"
    "  root. Before publishing, name its address: SITE_URL=https://... python3 build.py build"
)


def site_url() -> str:
    """SITE_URL with a slash at its end, or nothing; BuildError when it is no whole address."""
    given = os.environ.get("SITE_URL", "").strip()
    if not given:
        return ""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BuildError(f"SITE_URL = {given}: must be an address such as https://example.org/run/")
    return given.rstrip("/") + "/"


def path_of(address: str) -> str:
    """The path that a site at `address` lives under; the root where no address is known."""
    return urlsplit(address).path or "/"


def write_relative_sitemap(site: Path) -> None:
    """List every page in sitemap.xml by its address relative to the site's root."""
    entries = "".join(f"<url><loc>{escape(page)}</loc></url>\n" for page in pages_of(site))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'{head}<urlset xmlns="{namespace}">\n{entries}</urlset>\n'
    (site / "sitemap.xml").write_text(text, "utf-8")
    (site / "sitemap.xml.gz").unlink(missing_ok=True)


def pages_of(site: Path) -> Iterator[str]:
    """The address of each page, relative to the site's root."""
    for page in sorted(site.rglob("index.html")):
        folder = page.parent.relative_to(site).as_posix()
        yield "./" if folder == "." else f"{folder}/"
