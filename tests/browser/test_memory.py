"""Second visits that start from Python's kept memory, and all that must not come of it."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_answers import assert_same
from tests.browser.test_offline import (
    KEPT,
    NEVER_DONE,
    NEW,
    deploy_newer,
    deploy_worker,
    eventually,
    rest,
    timed_guest,
    wait_until_kept,
    wait_until_removed,
)
from tests.browser.visits import Visit, Visitor, open_calculator, settled
from tests.browser.written_run import LiveServer
from tools.versions import WORKER, folder_of

pytestmark = pytest.mark.browser

MEMORY = "/memory"
IS_KEPT = "html[data-memory=kept]"
RESUMED, STARTED = "html[data-python=resumed]", "html[data-python=started]"
STATE = {"model": "Qwen/Qwen3-0.6B", "gpu": "rtx-4090", "lora": "16", "lora_targets": "all-linear"}
QUICK = "model=bert-base"  # a state whose advice is soon found
# Put what `change` makes of the kept bytes and their digest in the place of both.
REPLACE = """async (change) => {
  for (const name of await caches.keys()) {
    const store = await caches.open(name);
    const found = (await store.keys()).find(({url}) => url.endsWith("/memory"));
    if (!found) continue;
    const kept = await store.match(found);
    const headers = Object.fromEntries(kept.headers);
    const bytes = new Uint8Array(await kept.arrayBuffer());
    bytes[change.at] ^= 1;
    if (change.fits) {
      headers["x-digest"] = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).join();
    }
    await store.put(found, new Response(bytes, {headers: {...headers, ...change.headers}}));
    return bytes.length;
  }
}"""
LOOKUPS = "() => window.lookups"
WORKERS = "() => window.workers"
SIZE = REPLACE.replace("bytes[change.at] ^= 1;", "return bytes.length;")


def visit_and_rest(visitor: Visit) -> Page:
    """Visit the calculator for the time after which files, and then Python's memory, are kept."""
    page = visitor.open(f"calculator/?{QUICK}")
    settled(page)
    rest(page)
    page.wait_for_selector("html[data-kept]", state="attached")
    rest_with_python(page)
    return page


def rest_with_python(page: Page) -> None:
    """Pass the time after which Python's memory is kept; while Python works, that starts over."""
    for _ in range(2):
        page.wait_for_function("() => window.unanswered === 0")
        page.clock.run_for(6000)


def keep_memory(visitor: Visit) -> Page:
    """Visit the calculator until it has kept Python's memory."""
    page = visit_and_rest(visitor)
    assert page.evaluate(LOOKUPS) == 1
    page.wait_for_selector(IS_KEPT, state="attached")
    assert page.query_selector(STARTED)
    return page


def open_again(visitor: Visit, query: str = QUICK) -> Page:
    """Visit the calculator again, and wait for Python."""
    page = open_calculator(visitor, query)
    page.wait_for_selector("html[data-python]", state="attached")
    return page


def calculates(page: Page) -> None:
    """Change the form, and wait for the answer."""
    page.locator("#batch_size").fill("3")
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 3")


DAMAGED = {"at": 10_000_000, "fits": False}  # on the disk
OF_ANOTHER_BROWSER = {"at": 0, "fits": True, "headers": {"x-browser": "Mosaic/0.9"}}
REJECTED = {"at": 65536, "fits": True}  # by Pyodide: this build does not try it again


def test_a_second_visit_starts_from_kept_memory_where_it_serves(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = timed_guest(visit, server.address)
    page = keep_memory(visitor)
    open_again(visitor, urlencode(STATE))
    assert page.query_selector(RESUMED)
    assert_same(page, STATE)
    calculates(page)
    for change in (DAMAGED, OF_ANOTHER_BROWSER):  # made once more
        starts_without(visitor, change)
        rest(page)
        rest_with_python(page)
        page.wait_for_selector(IS_KEPT, state="attached")
    server.stop()
    assert open_again(visitor).query_selector(RESUMED)
    calculates(page)
    server.start()
    starts_without(visitor, REJECTED)
    assert page.evaluate(SIZE, {}) == 0
    assert open_again(visitor).query_selector(STARTED)
    assert visitor.errors == []


def starts_without(visitor: Visit, change: dict[str, Any]) -> None:
    """After a change of the kept memory, the next visit starts Python again, and calculates."""
    assert visitor.page.evaluate(REPLACE, change) > 10_000_000
    page = open_again(visitor)
    assert page.query_selector(STARTED), change
    calculates(page)


def test_a_new_build_drops_all_that_the_old_one_kept_though_its_worker_still_runs(
    visit: Visitor, server: LiveServer, site: Path
) -> None:
    # Not with one that ends: Chromium under developer tools loses a page asked for just then.
    deploy_worker(server.folder, NEVER_DONE + (site / WORKER).read_text("utf-8"))
    visitor = timed_guest(visit, server.address)
    page = keep_memory(visitor)
    visitor.open("about/")
    rest(page)
    wait_until_kept(page, "/about/", MEMORY)
    new, old = deploy_newer(site, server.folder), folder_of(site, "assets").name
    visitor.open("about/")
    expect(page.locator("h1")).to_contain_text("Newer")  # at once, not at the visit after the next
    rest(page)
    wait_until_kept(page, *(f"/{new}/{name}" for name in NEW))
    eventually(page, lambda: not any(old in path for path in page.evaluate(KEPT)))
    server.stop()
    visitor.requests.clear()
    keep_memory(visitor)
    assert any(new in url for url in visitor.requests)
    assert [url for url in visitor.requests if old in url] == []
    assert [path for path in page.evaluate(KEPT) if path.endswith(MEMORY)] == [f"/{new}{MEMORY}"]
    assert open_again(visitor).query_selector(RESUMED)
    server.start()
    assert not any(address.endswith(MEMORY) for address, _ in server.asked)
    visitor.open("about/")
    page.get_by_label("Keep pages on this device").uncheck()
    wait_until_removed(page)
    assert open_again(visitor).query_selector(STARTED)
    calculates(page)
    rest_with_python(page)
    assert page.evaluate(LOOKUPS) == 0
    assert page.evaluate(KEPT) == []
    assert visitor.errors == []


# A device that is small, saves data or has little room, as `short` says.
SHORTAGES = """
const define = (kind, name, get) => Object.defineProperty(kind.prototype, name, {get});
window.short = "memory";
define(Navigator, "deviceMemory", () => (window.short === "memory" ? 2 : 8));
define(NetworkInformation, "saveData", () => window.short === "data");
StorageManager.prototype.estimate = async () =>
  { window.estimates += 1; return {quota: 5e8, usage: 4e8}; };
"""
# What the service worker's word leads to, that all which was visited is kept.
KEEP = "(short) => { window.short = short; dispatchEvent(new Event('kept')); }"


def test_memory_is_not_kept_where_memory_data_or_room_is_short(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = timed_guest(visit, server.address)
    visitor.page.add_init_script(SHORTAGES)
    page = visit_and_rest(visitor)
    page.evaluate(KEEP, "data")
    rest_with_python(page)
    assert page.evaluate(LOOKUPS) == 0
    page.evaluate(KEEP, "room")
    rest_with_python(page)
    page.wait_for_function("() => window.estimates === 1")
    assert page.evaluate(WORKERS) == [""]
    assert visitor.errors == []
