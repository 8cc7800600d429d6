"""One Chromium for the browser tests, and visitors to the built site."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.visits import PATIENCE_MS, Return, Visit, Visitor
from tests.browser.written_run import LiveServer, WrittenRun, serving
from tools.chromium import FLAGS

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package")
def browser(chromium: Path) -> Iterator[Browser]:
    """A Chromium for these tests, whose event loop is in the way of all that have their own."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


def note_violation(visitor: Visit, message: str) -> None:
    """Count what the page's content security policy has refused as an error."""
    if "Content Security Policy" in message:
        visitor.errors.append(message)


@pytest.fixture
def visit(request: pytest.FixtureRequest, browser: Browser, site_address: str) -> Iterator[Visitor]:
    """Makes a fresh visitor with settings of their own, for example `viewport`.

    In files marked with `one_python`, the visitor without settings is always the same.
    """
    contexts: list[BrowserContext] = []
    is_shared = request.node.get_closest_marker("one_python")

    def make(address: str = site_address, **settings: Any) -> Visit:
        if is_shared and not settings:
            return cast(Visit, request.getfixturevalue("returning"))
        context = new_context(browser, **settings)
        contexts.append(context)
        return noting(Visit(context.new_page(), address))

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def returning(browser: Browser, site_address: str) -> Iterator[Visit]:
    """The visitor of many tests, whose one Python starts once."""
    with new_context(browser) as context:
        yield noting(Return(context.new_page(), site_address))


def new_context(browser: Browser, **settings: Any) -> BrowserContext:
    """A visitor's own part of the browser."""
    # Requests that a service worker makes would be missed by routes, and counted; it has tests.
    context = browser.new_context(**{"service_workers": "block", **settings})
    context.set_default_timeout(PATIENCE_MS)
    return context


def noting(visitor: Visit) -> Visit:
    """The visit, which notes what its page asks for and what fails in it."""
    page = visitor.page
    page.context.on("request", lambda request: visitor.requests.append(request.url))
    page.on("pageerror", lambda error: visitor.errors.append(str(error)))
    page.on("console", lambda message: note_violation(visitor, message.text))
    return visitor


@pytest.fixture
def stage(site: Path, tmp_path: Path) -> Iterator[tuple[LiveServer, WrittenRun]]:
    """A server of the site that can be stopped, and the only run that it shows."""
    with serving(site, tmp_path) as made:
        yield made


@pytest.fixture
def server(stage: tuple[LiveServer, WrittenRun]) -> LiveServer:
    """The server that the pages come from."""
    return stage[0]
