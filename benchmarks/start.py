"""Time and processor time to Python's first answer, against a page with stock Pyodide alone.

The browser rests before a visit, and the page notes its answer itself: else the browser's own start
and the search for the answer, frame by frame, would count.

A second visit happens in a new browser with the same profile, once the first one has kept
what it loaded, and Python's memory: what somebody meets who comes back on another day.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page

from benchmarks.chromium import (
    ANSWERED,
    BARE_ANSWERED,
    Visit,
    fresh_visit,
    returning_visit,
    site_with_bare_pages,
)
from benchmarks.figures import Figure, Table, median
from tools.versions import folder_of
from tools.website import SITE

STOCK, LIBRARY, PAGE = "stock Pyodide alone", "compiled library alone", "calculator's page"
PATHS = {
    STOCK: ("bare/index.html?stock", BARE_ANSWERED),
    LIBRARY: ("bare/index.html?bytecode", BARE_ANSWERED),
    PAGE: ("calculator/", ANSWERED),
}
RETURNED_TO = (STOCK, PAGE)
# The most that each may be of stock Pyodide's first visit.
TARGETS = {"first": (0.40, 0.45), "second": (0.20, 0.20)}
PATIENCE_MS = 120_000
MEMORY_KEPT = "html[data-memory=kept]"
REST_MS = 3000  # after which browsers have stored the code that they have compiled, or have started
# Lets a page write the time at which it has what SELECTOR selects.
NOTED = "answered at "
NOTE_ANSWER = f"""(() => {{
  const watch = new MutationObserver(() => {{
    if (!document.querySelector(SELECTOR)) return;
    watch.disconnect();
    console.debug("{NOTED}" + performance.now());
  }});
  const changes = {{subtree: true, childList: true, attributeFilter: ["data-answer-id"]}};
  watch.observe(document, changes);
}})()"""
POLL_MS = 200


@dataclass(frozen=True)
class Start:
    """Times of one visit until Python has answered."""

    seconds: float
    processor_seconds: float


def run(quick: bool) -> Table:
    """Visit the pages in turns, each in a browser of its own, so that all meet the same load."""
    rounds = 2 if quick else 5
    starts: dict[tuple[str, str], list[Start]] = {}
    with site_with_bare_pages() as address:
        for _ in range(rounds):
            for name in PATHS:
                starts.setdefault(("first", name), []).append(_first(address, name))
            for name in RETURNED_TO:
                starts.setdefault(("second", name), []).append(_second(address, name))
    figures = [
        figure for (visit, name), seen in starts.items() for figure in _times(visit, name, seen)
    ]
    for visit in TARGETS:
        figures += _ratios(visit, starts[visit, PAGE], starts["first", STOCK])
    ratios = [
        page.processor_seconds / stock.processor_seconds
        for page, stock in zip(starts["second", PAGE], starts["second", STOCK], strict=True)
    ]
    figures.append(
        Figure("second visit: processor time / stock's second visit", median(ratios), "")
    )
    return Table(f"First answer of Python (median of {rounds})", figures)


def _times(visit: str, name: str, seen: list[Start]) -> list[Figure]:
    processor = median([start.processor_seconds for start in seen])
    return [
        Figure(f"{visit} visit, {name}: time", median([start.seconds for start in seen]), "s"),
        Figure(f"{visit} visit, {name}: processor time", processor, "s"),
    ]


def _ratios(visit: str, page: list[Start], stock: list[Start]) -> list[Figure]:
    """Median ratios of visits that follow each other: the machine's load is most alike in them."""
    pairs = list(zip(page, stock, strict=True))
    processor = median([one.processor_seconds / other.processor_seconds for one, other in pairs])
    time = median([one.seconds / other.seconds for one, other in pairs])
    most_processor, most_time = TARGETS[visit]
    return [
        Figure(f"{visit} visit: processor time, stock = 1", processor, "", most_processor),
        Figure(f"{visit} visit: time, stock = 1", time, "", most_time),
    ]


def _first(address: str, name: str) -> Start:
    path, answered = PATHS[name]
    with fresh_visit() as visit:
        return measure(visit, address + path, answered)


def _second(address: str, name: str) -> Start:
    path, answered = PATHS[name]
    with TemporaryDirectory() as folder:
        profile = Path(folder)
        with returning_visit(profile) as visit:
            measure(visit, address + path, answered)
            if name == PAGE:
                wait_until_kept(visit.page, address)
                visit.page.wait_for_selector(MEMORY_KEPT, state="attached")
            visit.page.wait_for_timeout(REST_MS)
        with returning_visit(profile) as visit:
            return measure(visit, address + path, answered)


def measure(visit: Visit, address: str, answered: str) -> Start:
    """Go to a page; the times until it has what `answered` selects."""
    page = visit.page
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script(NOTE_ANSWER.replace("SELECTOR", json.dumps(answered)))
    page.wait_for_timeout(REST_MS)
    before = visit.processor_seconds()
    with page.expect_console_message(lambda message: message.text.startswith(NOTED)) as noted:
        page.goto(address, wait_until="commit")
    milliseconds = float(noted.value.text.removeprefix(NOTED))
    return Start(milliseconds / 1e3, visit.processor_seconds() - before)


def wait_until_kept(page: Page, address: str) -> None:
    """Wait until the service worker has kept Python, the last of what the page loads.

    Raises:
        RuntimeError: when it never does.
    """
    runtime = f"{address}{folder_of(SITE, 'pyodide').name}/pyodide.asm.wasm"
    kept = "async (address) => Boolean(await caches.match(address, {ignoreVary: true}))"
    for _ in range(PATIENCE_MS // POLL_MS):
        if page.evaluate(kept, runtime):
            return
        page.wait_for_timeout(POLL_MS)
    raise RuntimeError(f"The service worker never kept {runtime}.")
