"""What the browser tests share: one Chromium, pages that note their requests, Python's answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from calculator import protocol
from tools.chromium import FLAGS

# Slow machines start Pyodide slowly; nothing here measures time.
PATIENCE_MS = 120_000


@pytest.fixture(scope="session")
def browser(chromium: Path) -> Iterator[Browser]:
    """A Chromium for all tests."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


@dataclass
class Visit:
    """A page, what it asked servers for, and what went wrong in it."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> Page:
        """Go to a page of the site."""
        self.page.goto(self.address + path)
        return self.page


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, site_address: str) -> Iterator[Visitor]:
    """Makes a fresh visitor with settings of their own, for example `viewport`."""
    contexts: list[BrowserContext] = []

    def make(address: str = site_address, **settings: Any) -> Visit:
        context = browser.new_context(**settings)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        visitor = Visit(context.new_page(), address)
        context.on("request", lambda request: visitor.requests.append(request.url))
        visitor.page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        return visitor

    yield make
    for context in contexts:
        context.close()


def settled(page: Page) -> None:
    """Wait until Python has answered the form's present state."""
    page.wait_for_selector("#calculator-answer[aria-busy='false']")


def open_calculator(visitor: Visit, query: str = "") -> Page:
    """Open the calculator and wait for Python's first answer."""
    page = visitor.open("calculator/" + (f"?{query}" if query else ""))
    settled(page)
    return page


def python_answers(method: str, params: dict[str, str]) -> dict[str, Any]:
    """What CPython answers to the page's request."""
    request = json.dumps({"id": 1, "method": method, "params": params})
    answer: dict[str, Any] = json.loads(protocol.handle(request))
    return answer
