"""One Chromium for the browser tests, and visitors to the built site."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.visits import PATIENCE_MS, Visit, Visitor
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
def visit(browser: Browser, site_address: str) -> Iterator[Visitor]:
    """Makes a fresh visitor with settings of their own, for example `viewport`."""
    contexts: list[BrowserContext] = []

    def make(address: str = site_address, **settings: Any) -> Visit:
        # Requests that a service worker makes would be missed by routes, and counted; it has tests.
        context = browser.new_context(**{"service_workers": "block", **settings})
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        visitor = Visit(context.new_page(), address)
        context.on("request", lambda request: visitor.requests.append(request.url))
        visitor.page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        visitor.page.on("console", lambda message: note_violation(visitor, message.text))
        return visitor

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def stage(site: Path, tmp_path: Path) -> Iterator[tuple[LiveServer, WrittenRun]]:
    """A server of the site that can be stopped, and the only run that it shows."""
    with serving(site, tmp_path) as made:
        yield made


@pytest.fixture
def server(stage: tuple[LiveServer, WrittenRun]) -> LiveServer:
    """The server that the pages come from."""
    return stage[0]
