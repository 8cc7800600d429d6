"""Values of the live data that are not what they should be become no link, attribute or markup."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visitor
from tests.browser.written_run import LiveServer, WrittenRun

pytestmark = pytest.mark.browser

ELSEWHERE = "https://example.org/weights.safetensors"
INSIDE = "checkpoints/000001/model.safetensors"
TRICKS = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "blob:null/1",
    "//example.org/weights",
    "\\\\example.org/weights",
    "/weights",
    "../other/weights",
    "%2e%2e/other/weights",
    "a/..%2f..%2fother",
    "https://name:word@example.org/",
    "ftp://example.org/",
    "http://",
]
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def stage(stage: tuple[LiveServer, WrittenRun]) -> tuple[LiveServer, WrittenRun]:
    """A server, and a run with steps."""
    _, run = stage
    run.open()
    run.add(5)
    return stage


def change(path: Path, **values: Any) -> None:
    """Put values into an object of a run's file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def checkpoint(step: int, address: object) -> dict[str, object]:
    time = "2026-11-21T18:31:31.420Z"
    return {"step": step, "loss": 1.0, "time": time, "address": address, "sha256": f"{step:064x}"}


def test_only_files_of_the_run_and_web_pages_become_links(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    addresses = [INSIDE, ELSEWHERE, *TRICKS]
    entries = [checkpoint(step, address) for step, address in enumerate(addresses)]
    (run.path / "checkpoints.json").write_text(json.dumps(entries))
    change(run.path / "run.json", links={trick: trick for trick in [ELSEWHERE, *TRICKS]})
    visitor = visit(server.address)
    page = visitor.open("live/")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".checkpoints tbody tr")).to_have_count(len(addresses))
    links = page.locator(".checkpoints tbody a")
    hrefs = links.evaluate_all("(links) => links.map((link) => link.href)")
    assert sorted(hrefs) == sorted([ELSEWHERE, f"{server.address}live/{run.path.name}/{INSIDE}"])
    shown = page.locator("[data-live=about] a")
    assert shown.evaluate_all("(links) => links.map((link) => link.href)") == [ELSEWHERE]
    assert visitor.errors == []


def test_entries_that_are_none_are_left_out_and_counted_and_texts_are_shown_as_texts(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    run.write_people("ada", MARKUP)
    people = json.loads((run.path / "peers.json").read_text())
    bad = [None, 3, {}, {**people[0], "id": 'x" onclick="'}, {**people[0], "name": {}}]
    (run.path / "peers.json").write_text(json.dumps([*people, *bad]))
    wrong = [{**checkpoint(2, None), "sha256": MARKUP}, {**checkpoint(3, None), "step": "4"}, []]
    (run.path / "checkpoints.json").write_text(json.dumps([checkpoint(1, None), *wrong]))
    texts = ["the old cat sees a dog .", f"the old cat {MARKUP}"]
    drawn = {"step": 1, "time": "2026-11-21T18:31:31.420Z", "texts": [texts]}
    samples = {"prompts": ["the old cat"], "checkpoints": [drawn, drawn | {"images": [[]]}]}
    (run.path / "samples.json").write_text(json.dumps(samples))
    visitor = visit(server.address)
    page = visitor.open("live/")
    problems = page.locator("[data-live=problems]")
    expect(problems).to_contain_text("5 entries of peers.json could not be used")
    expect(problems).to_contain_text("3 entries of checkpoints.json could not be used")
    expect(problems).to_contain_text("1 entry of samples.json")
    expect(page.locator(".checkpoints tbody tr")).to_have_count(1)
    expect(page.locator(".board tbody th")).to_have_text(["ada", MARKUP])
    section = page.locator("[data-live=pictures]")
    expect(section.get_by_role("heading")).to_have_text("Texts during the run")
    expect(section.locator("figure p")).to_have_text(texts)
    assert section.locator("img").count() == 0
    assert page.locator("main img[src=x]").count() == 0
    assert visitor.errors == []


def test_a_caption_cannot_leave_its_place_in_the_command(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    caption = 'a "$(rm -rf ~)" it\'s'
    drawn = {"step": 1, "time": "2026-11-21T18:31:31.420Z", "images": [["../../x.png"]]}
    samples = {"prompts": [caption], "checkpoints": [drawn]}
    (run.path / "samples.json").write_text(json.dumps(samples))
    (run.path / "checkpoints.json").write_text(json.dumps([checkpoint(1, INSIDE)]))
    visitor = visit(server.address)
    page = visitor.open("live/")
    command = page.locator("[data-live=use-command]")
    expect(command).to_contain_text("'a \"$(rm -rf ~)\" it'\\''s'")
    assert not any("x.png" in url for url in visitor.requests)
