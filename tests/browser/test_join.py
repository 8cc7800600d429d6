"""The joining page: its tabs need no script and obey the keyboard."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from templates.pieces.commands import places
from tests.browser.visits import Visitor
from tools.source import ARCHIVE, find_source

pytestmark = pytest.mark.browser


def test_each_tab_shows_its_own_commands_without_a_script(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("join/")
    for number, place in enumerate(places(find_source())):
        page.locator(".tabbed-labels > label", has_text=place.title).click()
        panel = page.locator(".tabbed-block").nth(number)
        expect(panel).to_be_visible()
        for line in place.lines:
            expect(panel).to_contain_text(line)
        expect(page.locator(".tabbed-block:visible")).to_have_count(1)
    page.locator(".tabbed-set > input").first.press("ArrowRight")
    expect(page.locator(".tabbed-block").nth(1)).to_be_visible()
    if find_source().needs_download:
        expect(page.locator(".curl-line").first).to_be_hidden()


def test_the_notebooks_can_be_downloaded(site: Path) -> None:
    for path, name in (("tutorial/", "tutorial.ipynb"), ("join/", "join.ipynb")):
        text = (site / path / "index.html").read_text("utf-8")
        (address, *_) = re.findall(rf'href="?([^ ">]*{name})', text)
        assert json.loads((site / path / address).read_text("utf-8"))["nbformat"] == 4


def test_the_line_for_curl_has_the_address_of_this_site(visit: Visitor) -> None:
    if not find_source().needs_download:
        pytest.skip("pip fetches the source itself")
    page = visit().open("join/")
    archive = page.url.removesuffix("join/") + ARCHIVE
    expect(page.locator(".curl-line").first).to_have_text(f"curl -LO {archive}")
    assert page.request.get(archive).ok
