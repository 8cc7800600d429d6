"""Pictures of the pages at two widths in both schemes."""

import argparse
import re
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.visits import PATIENCE_MS, Visit, advised
from tools.addresses import pages_of
from tools.chromium import FLAGS, find_chromium
from tools.server import serving
from tools.website import SITE

WIDTHS = (1440, 390)
HEIGHT = 900
SCHEMES = ("light", "dark")
NO_FILE_NAME = re.compile(r"[^\w.-]+")


def address_of(name: str) -> str:
    """The address of a page in the site, by its name and perhaps a query."""
    path, mark, query = name.partition("?")
    return f"{path.rstrip('/')}/{mark}{query}"


def take(visitor: Visit, path: str, target: Path) -> None:
    """Save one whole page, the calculator after Python's answers."""
    page = visitor.open_all(path)
    if page.query_selector("#calculator-answer"):
        advised(page)
    # The window becomes as high as the page: scrolling to see the rest would hide the tabs.
    height = page.evaluate("() => document.documentElement.scrollHeight")
    width = (page.viewport_size or {"width": WIDTHS[0]})["width"]
    page.set_viewport_size({"width": width, "height": height})
    for chart in page.query_selector_all("[data-chart] [data-plot]"):  # drawn when in sight
        chart.wait_for_selector(".main-svg", state="attached")
    page.screenshot(path=target)
    page.set_viewport_size({"width": width, "height": HEIGHT})


def main(out: Path, names: list[str]) -> None:
    """Take pictures of the pages so named, else of all pages of the built site, into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, serving(SITE) as address:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        for width in WIDTHS:
            for scheme in SCHEMES:
                size = {"width": width, "height": HEIGHT}
                page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
                page.set_default_timeout(PATIENCE_MS)
                visitor = Visit(page, address)
                for path in [address_of(name) for name in names] or [*pages_of(SITE), "404.html"]:
                    name = NO_FILE_NAME.sub("-", path.removesuffix(".html")).strip(".-") or "home"
                    target = out / f"{name}-{width}-{scheme}.png"
                    take(visitor, path, target)
                    print(target)
                page.close()
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.browser.screenshots", description=__doc__
    )
    parser.add_argument("out", type=Path, help="folder of the pictures")
    parser.add_argument(
        "names", nargs="*", metavar="PAGE", help="join calculator?gpu=l4; all pages"
    )
    main(**vars(parser.parse_args()))
