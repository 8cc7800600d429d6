"""What stays when something is missing: JavaScript, Pyodide, its fast library, the root path."""

from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Route, expect

from calculator.catalog import GPUS, MODELS
from tests.browser.visits import Visitor, open_calculator, python_answers, settled
from tools.server import make_server

pytestmark = pytest.mark.browser


def test_without_javascript_the_tables_are_there_and_the_form_is_not(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open("calculator/")
    expect(page.locator("#calculator-form")).to_be_hidden()
    expect(page.locator("noscript, .notice").first).to_be_visible()
    rows = page.locator(".figures--models tbody th").all_inner_texts()
    assert rows == [model.title for model in MODELS.values()]
    assert page.locator("#gpu option").count() == len(GPUS) + 1


@pytest.mark.parametrize("missing", ["**/pyodide/*", "**/calculator.zip", "**/worker.js"])
def test_without_pyodide_the_page_says_so_and_keeps_its_figures(
    visit: Visitor, missing: str
) -> None:
    visitor = visit()
    visitor.page.route(missing, lambda route: route.fulfill(status=404, body="gone"))
    page = visitor.open("calculator/")
    expect(page.locator("#calculator-status")).to_contain_text("Python could not be loaded")
    expect(page.locator("#model")).to_be_disabled()
    value = python_answers("answer", {})["value"]
    expect(page.locator("#calculator-verdict")).to_have_text(value["verdict"]["text"])


def test_without_the_fast_library_the_stock_one_is_taken(visit: Visitor) -> None:
    visitor = visit()
    gone: list[str] = []

    def refuse(route: Route) -> None:
        gone.append(route.request.url)
        route.fulfill(status=404, body="gone")

    visitor.page.route("**/python_stdlib_bytecode.zip", refuse)
    page = open_calculator(visitor, "batch_size=2")
    assert gone
    expect(page.locator("#calculator-command")).to_contain_text("--batch-size 2")


def test_the_site_works_under_any_path(
    visit: Visitor, site: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "er").symlink_to(site, target_is_directory=True)
    server = make_server(tmp_path, 0)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        visitor = visit(f"http://127.0.0.1:{server.server_port}/deep/er/")
        page = visitor.open()
        page.locator(".hero a.action").click()
        settled(page)
        assert "/deep/er/calculator/" in page.url
        strays = [url for url in visitor.requests if not url.startswith(visitor.address)]
        assert strays == []
        assert visitor.errors == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
