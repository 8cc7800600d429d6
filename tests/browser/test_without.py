"""The site when something is missing: JavaScript, Pyodide, its fast library."""

import zipfile
from math import inf
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from calculator.catalog import GPUS, MODELS
from templates.pages.calculator.context import OPENING
from tests.browser.visits import Visit, Visitor, open_calculator, settled
from tests.calculator.plans import ask
from tools.versions import folder_of

pytestmark = pytest.mark.browser


def test_without_javascript_the_tables_and_the_defaults_program_are_there_and_the_form_is_not(
    visit: Visitor,
) -> None:
    page = visit(java_script_enabled=False).open("calculator/")
    expect(page.locator("#calculator-form")).to_be_hidden()
    expect(page.locator("noscript, .notice").first).to_be_visible()
    rows = page.locator(".figures--models tbody th").all_inner_texts()
    assert rows == [model.title for model in MODELS.values()]
    assert page.locator("#gpu option").count() == len(GPUS) + 1
    page.locator("#calculator-program > summary").click()
    program = page.locator("#program-text")
    expect(program).to_be_visible()
    written = ask("code", **OPENING)["value"]["program"]
    assert (program.text_content() or "").strip() == written.strip()
    expect(page.locator("#program-copy")).to_be_hidden()


NEEDED = ("worker.js", "pyodide.mjs", "pyodide.asm.wasm", "*.zip")


def test_without_pyodide_the_page_says_so_keeps_its_figures_and_can_try_again(
    visit: Visitor,
) -> None:
    visitor = visit()
    page = visitor.page
    status = page.locator("#calculator-status")
    again = status.get_by_role("button", name="Try again")
    value = ask("answer", **OPENING)["value"]
    for missing in NEEDED:
        page.route(f"**/{missing}", lambda route: route.fulfill(status=404, body="gone"))
        with page.expect_request(f"**/{missing}"):
            if missing == NEEDED[0]:
                visitor.open("calculator/")
            else:
                again.click()
        expect(status).to_contain_text("Python could not be loaded")
        expect(page.locator("#model")).to_be_disabled()
        expect(page.locator("#calculator-verdict")).to_have_text(value["verdict"]["text"])
        page.unroute(f"**/{missing}")
    again.click()
    settled(page)
    expect(status.get_by_role("button")).to_be_hidden()
    page.locator("#batch_size").fill("2")
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 2")


BLOCKED = """
globalThis.Worker = class { constructor() { throw new DOMException("no", "SecurityError"); } };
"""
NO_WORKERS = "this browser blocks workers, and Python runs in one."
INCAPABLE = {
    BLOCKED: NO_WORKERS,
    "delete globalThis.Worker;": NO_WORKERS,
    "delete globalThis.WebAssembly;": "this browser has no WebAssembly, or it is switched off.",
}


@pytest.mark.parametrize("script", INCAPABLE)
def test_a_browser_in_which_python_cannot_run_is_told_and_has_the_tables(
    visit: Visitor, script: str
) -> None:
    words = f"Python could not be loaded: {INCAPABLE[script]}"
    visitor = visit()
    visitor.page.add_init_script(script)
    page = visitor.open("calculator/")
    status = page.locator("#calculator-status")
    expect(status).to_contain_text(words)
    expect(status.get_by_role("button", name="Try again")).to_be_visible()
    value = ask("answer", **OPENING)["value"]
    expect(page.locator("#calculator-verdict")).to_have_text(value["verdict"]["text"])
    expect(page.locator(".figures--models tbody th").first).to_be_attached()
    status.get_by_role("button", name="Try again").click()
    expect(status).to_contain_text(words)
    assert visitor.errors == []


def test_a_script_that_does_not_load_is_reported_with_a_way_to_try_again(
    visit: Visitor,
) -> None:
    visitor = visit()
    for script in ("calculator.js", "chunk-*.js"):
        visitor.page.route(f"**/{script}", lambda route: route.abort())
        page = visitor.open("calculator/")
        notice = page.get_by_role("alert").filter(has_text="did not load")
        expect(notice).to_be_visible()
        visitor.page.unroute(f"**/{script}")
        notice.get_by_role("button", name="Try again").click()
        page.wait_for_selector("#calculator-form[data-mounted]")
        expect(notice).to_have_count(0)


# A worker whose Python works until it is asked for four sequences, and then is gone.
MORTAL = """
addEventListener("message", ({data}) => {
  const {id, params} = JSON.parse(data);
  if (params.batch_size === "4") throw new Error("the end");
  postMessage(JSON.stringify({id, kind: "error", error: {type: "", field: "", message: "alive"}}));
});
for (const stage of ["loading", "starting", "ready"])
  postMessage(JSON.stringify({id: null, kind: "progress", stage}));
"""


def with_mortals(visitor: Visit, most: float) -> list[str]:
    """Addresses of the workers that a page starts, of which the first ones are mortal."""
    workers: list[str] = []

    def serve(route: Route) -> None:
        workers.append(route.request.url)
        if len(workers) > most:
            route.continue_()
        else:
            route.fulfill(content_type="text/javascript", body=MORTAL)

    visitor.page.route("**/worker.js", serve)
    return workers


def test_a_worker_that_dies_is_started_again_but_not_for_ever(visit: Visitor) -> None:
    visitor = visit()
    workers = with_mortals(visitor, most=inf)
    page = visitor.open("calculator/?model=gpt2-l")
    settled(page)
    assert len(workers) == 1
    page.locator("#batch_size").fill("4")
    status = page.locator("#calculator-status")
    expect(status).to_contain_text("Python stopped")
    expect(status.get_by_role("button", name="Try again")).to_be_visible()
    assert len(workers) == 3
    expect(page.locator("#calculator-answer[data-stale]")).to_have_count(1)


def test_a_worker_that_dies_once_is_replaced_and_says_so(visit: Visitor) -> None:
    visitor = visit()
    workers = with_mortals(visitor, most=1)
    page = visitor.open("calculator/?model=gpt2-l")
    settled(page)
    status = page.locator("#calculator-status")
    said = status.evaluate_handle("""(place) => {
      const said = [];
      const note = () => said.push(place.textContent);
      new MutationObserver(note).observe(place, {subtree: true, childList: true});
      return said;
    }""")
    page.locator("#batch_size").fill("4")
    settled(page)
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 4")
    assert any("starting again" in words for words in said.json_value())
    assert len(workers) == 2


def test_without_the_fast_library_the_stock_one_is_taken_and_wasm_of_a_wrong_type_runs(
    visit: Visitor,
) -> None:
    visitor = visit()
    gone: list[str] = []

    def refuse(route: Route) -> None:
        gone.append(route.request.url)
        route.fulfill(status=404, body="gone")

    def lie(route: Route) -> None:
        route.fulfill(response=route.fetch(), headers={"Content-Type": "text/plain"})

    visitor.page.route("**/python_stdlib_bytecode.zip", refuse)
    visitor.page.route("**/*.wasm", lie)
    page = open_calculator(visitor, "batch_size=2")
    assert gone
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 2")


def test_a_module_that_was_left_out_is_taken_from_the_whole_library(
    visit: Visitor, site: Path, tmp_path: Path
) -> None:
    smaller = tmp_path / "library.zip"
    library = folder_of(site, "pyodide") / "python_stdlib.zip"
    # Only a mistyped name needs difflib, and no other module of the library does.
    with zipfile.ZipFile(library) as whole, zipfile.ZipFile(smaller, "w") as target:
        for name in whole.namelist():
            if name != "difflib.py":
                target.writestr(name, whole.read(name))
        target.writestr("left_out.py", "NAMES = frozenset(['difflib'])")
    visitor = visit()
    visitor.page.route(
        "**/python_stdlib_bytecode.zip", lambda route: route.fulfill(body=smaller.read_bytes())
    )
    page = open_calculator(visitor, "batch_size=2")
    whole_library = "python_stdlib.zip"
    assert not any(url.endswith(whole_library) for url in visitor.requests)
    page.locator("#model").fill("bret-large")
    page.keyboard.press("Enter")
    expect(page.locator("#model-error")).to_contain_text("did you mean 'bert-large'")
    assert any(url.endswith(whole_library) for url in visitor.requests)
