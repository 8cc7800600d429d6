"""One Chromium for the browser tests, and visitors to the built site."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.visits import HUSH, PATIENCE_MS, Return, Visit, Visitor
from tests.browser.written_run import LiveServer, WrittenRun, serving
from tools.chromium import FEATURES_OFF, FLAGS

expect.set_options(timeout=PATIENCE_MS)

# No second renderer is made ready for each visitor, and nothing is drawn in a process of its own.
CHEAPLY = (
    *FLAGS,
    f"--disable-features={','.join((*FEATURES_OFF, 'SpareRendererForSitePerProcess'))}",
    "--in-process-gpu",
)
# To optimize Python's own machine code takes longer than all that tests ask of it.
UNOPTIMIZED = "--js-flags=--liftoff-only"


@pytest.fixture(scope="package")
def launch(chromium: Path) -> Iterator[Callable[..., Browser]]:
    """Starts a Chromium with more flags; whose event loop is in the way of all that have one."""
    with sync_playwright() as playwright:
        yield lambda *flags: playwright.chromium.launch(
            executable_path=chromium, args=[*CHEAPLY, *flags]
        )


@pytest.fixture(scope="package")
def browser(launch: Callable[..., Browser]) -> Iterator[Browser]:
    """The Chromium of most tests."""
    with launch(UNOPTIMIZED) as running:
        yield running


@pytest.fixture(scope="package")
def optimizing(launch: Callable[..., Browser]) -> Iterator[Browser]:
    """A Chromium for pages that train, in which WebAssembly runs at full speed."""
    with launch() as running:
        yield running


@pytest.fixture
def visit(request: pytest.FixtureRequest, browser: Browser, site_address: str) -> Iterator[Visitor]:
    """Makes a fresh visitor with settings of their own, for example `viewport`.

    In files marked with `one_python`, the visitor without settings is always the same, whose Python
    is asked for advice only with `one_python(advice=True)`.
    """
    contexts: list[BrowserContext] = []
    shared = request.node.get_closest_marker("one_python")

    def make(address: str = site_address, **settings: Any) -> Visit:
        if shared and not settings:
            visitor = cast(Return, request.getfixturevalue("returning"))
            visitor.advice = "advice" in shared.kwargs
            return visitor
        context = new_context(browser, **settings)
        contexts.append(context)
        return Visit(context.new_page(), address)

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def returning(browser: Browser, site_address: str) -> Iterator[Visit]:
    """The visitor of many tests, whose one Python starts once, and who asks for little motion.

    To draw what moves takes a twelfth of the processor's time in `test_form.py`.
    """
    with new_context(browser, reduced_motion="reduce") as context:
        context.add_init_script(HUSH)
        yield Return(context.new_page(), site_address)


@pytest.fixture
def archive(visit: Callable[..., Visit]) -> Page:
    """The page of the run that ships with the site, read by the script."""
    page = visit().open("live/")
    expect(page.locator("#live")).to_have_attribute("data-rounds", "1")
    return page


def new_context(browser: Browser, **settings: Any) -> BrowserContext:
    """A visitor's own part of the browser."""
    # Requests that a service worker makes would be missed by routes, and counted; it has tests.
    context = browser.new_context(**{"service_workers": "block", **settings})
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture
def stage(site: Path, tmp_path: Path) -> Iterator[tuple[LiveServer, WrittenRun]]:
    """A server of the site that can be stopped, and the only run that it shows."""
    with serving(site, tmp_path) as made:
        yield made


@pytest.fixture
def server(stage: tuple[LiveServer, WrittenRun]) -> LiveServer:
    """The server that the pages come from."""
    return stage[0]
