"""What holds for every page: own files only, accessible, no wider than the window."""

from pathlib import Path

import pytest

from tests.browser.visits import Visitor
from tools.console import ROOT

pytestmark = pytest.mark.browser

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
# Material names the buttons of all code blocks alike, so its landmarks are not unique.
RUN_AXE = "() => axe.run({rules: {'landmark-unique': {enabled: false}}})"
WIDTHS = (390, 768, 1440)


def pages_of(site: Path) -> list[str]:
    """The addresses of all pages, relative to the site's own."""
    folders = (page.parent.relative_to(site).as_posix() for page in site.rglob("index.html"))
    return sorted("" if folder == "." else f"{folder}/" for folder in folders)


def test_every_request_goes_to_our_own_origin(visit: Visitor, site: Path) -> None:
    for path in pages_of(site):
        visitor = visit()
        page = visitor.open(path)
        page.wait_for_load_state("networkidle")
        strays = [
            url
            for url in visitor.requests
            if not url.startswith((visitor.address, "data:", "blob:"))
        ]
        assert strays == [], path
        assert visitor.errors == [], path
        assert page.context.cookies() == [], path


def test_no_page_may_reach_another_origin(visit: Visitor, site: Path) -> None:
    for path in pages_of(site):
        page = visit().open(path)
        policy = page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content") or ""
        assert "default-src 'self'" in policy, path
        assert "http" not in policy, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing(visit: Visitor, site: Path, scheme: str, width: int) -> None:
    visitor = visit(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    for path in pages_of(site):
        page = visitor.open(path)
        page.wait_for_load_state("networkidle")
        page.add_script_tag(path=AXE)
        found = page.evaluate(RUN_AXE)["violations"]
        summary = [(v["id"], v["impact"], [n["target"] for n in v["nodes"]][:5]) for v in found]
        assert summary == [], path


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_window(visit: Visitor, site: Path, width: int) -> None:
    visitor = visit(viewport={"width": width, "height": 900})
    for path in pages_of(site):
        page = visitor.open(path)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, path


def test_every_page_has_its_own_title_and_description(visit: Visitor, site: Path) -> None:
    visitor = visit(java_script_enabled=False)
    titles = set()
    for path in pages_of(site):
        page = visitor.open(path)
        assert page.get_attribute("meta[name=description]", "content"), path
        assert page.locator("h1").count() == 1, path
        titles.add(page.title())
    assert len(titles) == len(pages_of(site))
