"""Visits without a network, and the service worker that makes them possible."""

import shutil
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.test_every_page import MOST_REQUESTS
from tests.browser.visits import (
    HUSH,
    PATIENCE_MS,
    Visit,
    Visitor,
    ask_now,
    open_calculator,
    settled,
)
from tests.browser.written_run import LiveServer, WrittenRun
from tools.versions import WORKER, folder_of

pytestmark = pytest.mark.browser

# The paths of all that is kept.
KEPT = """async () => {
  const paths = [];
  for (const name of await caches.keys())
    for (const {url} of await (await caches.open(name)).keys()) paths.push(new URL(url).pathname);
  return paths;
}"""
PATHS = "(links) => links.map(({pathname}) => pathname)"
POLL_MS = 100
PHONE = {"width": 390, "height": 844}
# What a page begins, noted before anything answers: registrations of a service worker, lookups of
# what is kept, estimates of the storage, the names of its workers, and questions without an answer.
NOTE_BEGINNINGS = """
Object.assign(window, {registered: 0, lookups: 0, estimates: 0, workers: [], unanswered: 0});
const {match} = CacheStorage.prototype;
CacheStorage.prototype.match = function (...given) {
  window.lookups += 1;
  return match.apply(this, given);
};
const register = globalThis.ServiceWorkerContainer?.prototype.register;
if (register) ServiceWorkerContainer.prototype.register = function (...given) {
  window.registered += 1;
  return register.apply(this, given);
};
globalThis.Worker = class extends Worker {
  constructor(address, options) {
    super(address, options);
    window.workers.push(options?.name);
    this.addEventListener("message", ({data}) => {
      if (/"id": ?\\d/.test(data)) window.unanswered -= 1;
    });
  }
  postMessage(...given) {
    window.unanswered += 1;
    super.postMessage(...given);
  }
};
"""
REGISTERED = "() => window.registered"
REGISTRATIONS = "async () => (await navigator.serviceWorker.getRegistrations()).length"
PYTHON = ["/worker.js", "/calculator.zip", "/pyodide.mjs", "/pyodide.asm.mjs", "/pyodide.asm.wasm"]
LIBRARY = "/python_stdlib_bytecode.zip"
# What is kept of a newer build once it has taken the place of the one before.
NEW = ("calculator.zip", "calculator.js", "worker.js")
# What a service worker begins with that is never done, so that a newer one has to wait for minutes.
NEVER_DONE = "addEventListener('message', (event) => event.waitUntil(new Promise(() => {})));\n"


def guest(visit: Visitor, address: str, **settings: Any) -> Visit:
    """A visitor whose browser runs service workers."""
    return visit(address, service_workers="allow", **settings)


def timed_guest(visit: Visitor, address: str) -> Visit:
    """A guest whose page's timers can be run ahead."""
    return with_a_clock(guest(visit, address))


def with_a_clock(visitor: Visit) -> Visit:
    """The visitor, who seeks no advice; the page notes its beginnings, and timers can run ahead."""
    visitor.page.clock.install()
    visitor.page.add_init_script(f"{HUSH} window.hushed = true;")
    visitor.page.add_init_script(NOTE_BEGINNINGS)
    return visitor


def rest(page: Page) -> None:
    """Pass the time after which a page that has loaded, and does nothing, is kept."""
    page.wait_for_load_state("load")
    page.clock.run_for(2500)


def eventually(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until something holds that the page itself does not show."""
    for _ in range(PATIENCE_MS // POLL_MS):
        if holds():
            return
        page.wait_for_timeout(POLL_MS)
    pytest.fail(f"It never came; kept are {page.evaluate(KEPT)}")


def wait_until_kept(page: Page, *names: str) -> None:
    """Wait until the browser keeps files whose paths end so."""
    eventually(page, lambda: all(any(p.endswith(n) for p in page.evaluate(KEPT)) for n in names))


def wait_until_removed(page: Page) -> None:
    """Wait until nothing is kept and no service worker runs."""
    eventually(page, lambda: not page.evaluate(KEPT) and not page.evaluate(REGISTRATIONS))


def test_what_was_visited_is_kept_once_python_runs_and_works_without_a_network(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = timed_guest(visit, server.address)
    held: list[Route] = []
    visitor.page.route("**/pyodide.asm.wasm", lambda route: held.append(route))
    with visitor.page.expect_request("**/pyodide.asm.wasm"):
        page = visitor.open("calculator/?model=bert-base")
    for _ in range(3):
        rest(page)
    assert page.evaluate(REGISTERED) == 0
    for route in held:
        route.continue_()
    settled(page)
    rest(page)
    assert page.evaluate(REGISTERED) == 1
    wait_until_kept(page, "/calculator/", "/styles/site.css", *PYTHON, LIBRARY)
    page.unroute_all()
    visitor.open("about/")
    rest(page)
    wait_until_kept(page, "/about/")
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    server.stop()
    page = open_calculator(visitor, "batch_size=3")
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 3")
    page.locator("#batch_size").fill("2")
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 2")
    visitor.open("about/")
    expect(page.locator("h1")).to_contain_text("About")
    visitor.open("claims/")
    expect(page.locator("h1")).to_have_text("No network")
    server.start()
    visitor.open("claims/")
    expect(page.locator("h1")).to_contain_text("Claims we checked")
    assert visitor.errors == []


def test_pages_for_visitors_work_without_a_network_before_anybody_visits_them(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = guest(visit, server.address)
    page = visitor.open("about/")
    nav = page.locator("nav[aria-label='All pages'] a")
    offered = [str(path).lstrip("/") for path in nav.evaluate_all(PATHS)]
    offered = offered[: offered.index("about/") + 1]  # Documentation comes after it
    wait_until_kept(page, *(f"/{path}" for path in offered), "/live.js", "/calculator.js")
    server.stop()
    for path in offered:
        visitor.open(path)
        expect(page.locator("h1")).not_to_have_text("No network")
        expect(page.locator("footer")).to_contain_text("MIT license")  # styled and whole
    visitor.open("claims/")
    expect(page.locator("h1")).to_have_text("No network")
    page.get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_contain_text("Train together")


def test_live_data_of_the_last_visit_are_shown_as_such_until_the_server_is_back(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    run.open()
    run.add(40)
    run.write_people("ada", "ben")
    visitor = guest(visit, server.address)
    page = visitor.open("live/")
    expect(page.locator("[data-live=step]")).to_have_text("40")
    wait_until_kept(
        page, "/live/", "/live.js", "/runs.json", "/watched/progress.jsonl", "/run.json"
    )
    server.stop()
    page.reload()
    state = page.locator("[data-live=state]")
    expect(state).to_contain_text("Offline: as of ")
    expect(page.locator("[data-live=detail]")).to_contain_text("kept from your last visit")
    expect(page.locator("[data-live=problems]")).to_contain_text("that your browser kept on")
    expect(page.locator("[data-live=step]")).to_have_text("40")
    expect(page.locator("[data-live=board-count]")).to_have_text("2 contributors")
    run.add(2)
    server.start()
    ask_now(page)
    expect(state).to_have_text("Running")
    expect(page.locator("[data-live=step]")).to_have_text("42")
    expect(page.locator("[data-live=problems]")).to_be_hidden()
    assert any(asked.startswith("bytes=") for asked in server.ranges_of("progress.jsonl"))
    assert visitor.errors == []


def deploy_worker(folder: Path, script: str) -> None:
    """Put another service worker in the place of what `folder` serves."""
    (folder / WORKER).unlink()  # a link into the built site
    (folder / WORKER).write_text(script)


def deploy_newer(site: Path, folder: Path) -> str:
    """Put another build in the place of what `folder` serves; return its name of the assets."""
    old = folder_of(site, "assets").name
    new = f"assets-{'0' * 12}"
    shutil.copytree(site / old, folder / new)  # before any page names it
    for page in [path for path in site.rglob("*.html") if "source" not in path.parts]:
        target = folder / page.relative_to(site)
        if target.parent.is_symlink():
            target.parent.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_text(page.read_text("utf-8").replace(old, new).replace("About", "Newer"))
    (folder / old).unlink()
    worker = (site / WORKER).read_text("utf-8")
    deploy_worker(folder, worker.replace(old, new))
    return new


def test_a_page_of_a_newer_build_is_loaded_whole(
    visit: Visitor, server: LiveServer, site: Path
) -> None:
    visitor = guest(visit, server.address)
    with visitor.page.expect_response("**/sitemap.xml"):
        page = visitor.open("join/")
    new = deploy_newer(site, server.folder)
    page.evaluate("() => { window.kept = true; }")
    page.locator("footer a", has_text="Calculator").click()
    page.wait_for_selector("#calculator-form[data-mounted]")
    assert not page.evaluate("() => window.kept")
    expect(page.locator(f"script[src*='{new}/calculator.js']").first).to_be_attached()


def test_the_switch_removes_what_is_kept_and_brings_it_back(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = timed_guest(visit, server.address)
    page = visitor.open("about/")
    wait_until_kept(page, "/about/")
    box = page.get_by_label("Keep pages on this device")
    expect(box).to_be_checked()
    box.uncheck()
    wait_until_removed(page)
    page.reload()
    expect(box).not_to_be_checked()
    rest(page)
    assert page.evaluate(REGISTERED) == 0
    assert page.evaluate(KEPT) == []
    box.check()
    wait_until_kept(page, "/about/")
    assert visitor.errors == []


def test_a_build_without_offline_use_removes_the_service_worker_even_a_busy_one(
    visit: Visitor, server: LiveServer, site: Path
) -> None:
    script = (site / WORKER).read_text("utf-8")
    deploy_worker(server.folder, NEVER_DONE + script)
    visitor = timed_guest(visit, server.address)
    page = visitor.open("about/")
    rest(page)
    wait_until_kept(page, "/about/")
    assert script.count("=!1,") == 1  # whether it is switched off
    deploy_worker(server.folder, script.replace("=!1,", "=!0,"))
    page.evaluate("async () => (await navigator.serviceWorker.getRegistration()).update()")
    wait_until_removed(page)


def test_full_storage_changes_nothing_but_visits_without_a_network(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = guest(visit, server.address)
    session = visitor.page.context.new_cdp_session(visitor.page)
    origin = server.address.rstrip("/")
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 100_000})
    visitor.open("about/").wait_for_function("() => document.documentElement.dataset.kept")
    page = open_calculator(visitor, "batch_size=3")
    assert "/pyodide.asm.wasm" not in " ".join(page.evaluate(KEPT))
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 3")
    assert visitor.errors == []


def test_where_service_workers_are_blocked_nothing_is_kept_and_nothing_fails(
    visit: Visitor, server: LiveServer
) -> None:
    visitor = with_a_clock(visit(server.address, service_workers="block"))
    page = visitor.open("about/")
    rest(page)
    assert page.evaluate(REGISTERED) == 1
    assert page.evaluate(KEPT) == []
    assert visitor.errors == []


@pytest.mark.parametrize("path", ["", "calculator/", "live/"])
def test_to_keep_a_page_costs_hardly_a_request(visit: Visitor, site: Path, path: str) -> None:
    own = f"/{path}"
    server = LiveServer(site)
    server.start()
    try:
        visitor = guest(visit, server.address, viewport=PHONE)
        page = visitor.open(path)
        needed = (*PYTHON, LIBRARY) if path == "calculator/" else ()
        wait_until_kept(page, own, "/styles/site.css", *needed)
    finally:
        server.stop()
    others = (path for path, _ in server.asked if path.endswith("/") and path != own)
    first = next(others, None)  # kept only afterward
    asked = list(takewhile(lambda one: one[0] != first, server.asked))
    assert len(asked) <= MOST_REQUESTS, asked
    assert visitor.errors == []
