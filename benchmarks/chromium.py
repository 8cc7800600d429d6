"""A fresh Chromium with its processor time, and bare pages beside the site to compare with."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tools.chromium import FLAGS, find_chromium
from tools.server import serving
from tools.versions import folder_of
from tools.website import SITE

# Figures that Python has put into the calculator's page, and into a bare page. Selectors, since the
# site's policy refuses a string of JavaScript.
ANSWERED = "#calculator-answer:not([data-answer-id='0'])"
BARE_ANSWERED = "#answer:not(:empty)"

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Visit:
    """One page in a browser that has seen nothing before."""

    browser: Browser
    page: Page

    def processor_seconds(self) -> float:
        """The processor time of all of the browser's processes so far."""
        session = self.browser.new_browser_cdp_session()
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
        session.detach()
        return sum(float(process["cpuTime"]) for process in processes)


@contextmanager
def fresh_visit() -> Iterator[Visit]:
    """Start a browser with empty caches and open an empty page in it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=list(FLAGS))
        try:
            yield Visit(browser, browser.new_page())
        finally:
            browser.close()


@contextmanager
def returning_visit(profile: Path) -> Iterator[Visit]:
    """Start a browser that keeps in `profile` what it loads, and open a page in it."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=str(find_chromium()), args=list(FLAGS)
        )
        assert context.browser is not None
        try:
            yield Visit(context.browser, context.pages[0])
        finally:
            context.close()


@contextmanager
def site_with_bare_pages() -> Iterator[str]:
    """Serve the site, and the pages of the folder pages/ under bare/; give the address."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in SITE.iterdir():
            (folder / entry.name).symlink_to(entry)
        bare = shutil.copytree(PAGES, folder / "bare")
        (bare / "pyodide").symlink_to(folder_of(SITE, "pyodide"))
        (bare / "calculator.zip").symlink_to(folder_of(SITE, "assets") / "calculator.zip")
        with serving(folder) as address:
            yield address
