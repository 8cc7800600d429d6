"""From page to page: without a reload, under any path."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.browser.visits import FOLLOW, Visitor, settled
from tools.addresses import pages_of
from tools.server import serving

pytestmark = pytest.mark.browser


@pytest.fixture
def deep_address(site: Path, tmp_path: Path) -> Iterator[str]:
    """The address of the built site under a path that the build knows nothing of."""
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "run").symlink_to(site)
    with serving(tmp_path) as address:
        yield f"{address}some/run/"


def test_every_page_is_reached_without_a_reload_and_keeps_the_style_sheet(
    visit: Visitor, site: Path, deep_address: str
) -> None:
    visitor = visit(deep_address)
    with visitor.page.expect_response("**/sitemap.xml"):
        page = visitor.open("about/")
    page.evaluate("() => { window.kept = document.styleSheets[0]; }")
    for path in pages_of(site):
        address = deep_address + path.removeprefix("./")
        page.evaluate(FOLLOW, f"{address}?from=elsewhere")
        expect(page.locator("link[rel=canonical]")).to_have_attribute("href", address)
        expect(page.locator("h1")).to_have_count(1)
        assert page.evaluate("() => Boolean(window.kept)"), f"{path} was reloaded"
        kept = page.evaluate("() => [...document.styleSheets].map((one) => one === window.kept)")
        assert kept == [True], path
    assert visitor.errors == []


def test_scripts_start_on_pages_that_are_navigated_to(visit: Visitor, deep_address: str) -> None:
    visitor = visit(deep_address, viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    with visitor.page.expect_response("**/sitemap.xml"):
        page = visitor.open("about/")
    page.evaluate("() => { window.kept = true; }")
    tabs = page.locator(".md-tabs")
    tabs.get_by_text("Calculator").click()
    settled(page)
    tabs.get_by_text("Live run").click()
    page.wait_for_selector("[data-rounds]")
    tabs.get_by_text("Home").click()
    page.wait_for_selector("[data-swarm][data-mounted]")
    tabs.get_by_text("Learn").click()
    page.get_by_role("link", name="Next").click()
    page.wait_for_selector("#step[data-mounted]")
    page.get_by_role("link", name="Previous").click()
    expect(page).to_have_url(re.compile(r"/some/run/numbers/$"))
    for _ in range(3):
        page.go_back()
    page.wait_for_selector("[data-swarm][data-mounted]")
    expect(page).to_have_url(re.compile(r"/some/run/$"))
    assert page.evaluate("() => window.kept")
    assert [url for url in visitor.requests if not url.startswith(deep_address)] == []
    assert visitor.errors == []


SECTIONS = {
    "numbers/": [
        *("Where the memory goes", "How training together works", "Security"),
        *("How accurate is it?", "Tutorial", "Run your own"),
    ],
    "use-it/": [
        *("Use it in your project", "Models on GPUs", "A thousand volunteers", "Reference"),
    ],
}


@pytest.mark.parametrize("first", SECTIONS)
def test_a_section_can_be_read_from_page_to_page(site: Path, first: str) -> None:
    read = [first]
    while True:
        text = (site / read[-1] / "index.html").read_text("utf-8")
        back, onward = (neighbor(text, read[-1], way) for way in ("previous", "next"))
        assert back == (read[-2] if read[1:] else None)
        if onward is None:
            break
        read.append(onward)
    assert len(read) == len(set(read)) >= len(SECTIONS[first])


def neighbor(text: str, here: str, way: str) -> str | None:
    """The page before or after the page of that text."""
    found = re.search(rf'class="?site-onward__{way}"?[^>]* href="?([^ ">]+)', text)
    return found and urljoin(here, found[1])


def test_a_page_shows_its_section(visit: Visitor) -> None:
    visitor = visit(viewport={"width": 1440, "height": 900})
    sidebar = visitor.page.locator(".md-sidebar--primary")
    for first, section in SECTIONS.items():
        visitor.open(first)
        for title in section:
            listed = sidebar.locator("a.md-nav__link:visible").filter(has_text=title)
            expect(listed.first).to_be_visible()
        expect(sidebar.locator("a.md-nav__link--active:visible").first).to_be_visible()
