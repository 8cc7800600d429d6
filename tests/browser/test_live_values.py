"""Values of the live data that are not what they should be become no link, attribute or markup."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.visits import Visitor, ask_now
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
CAPTION = 'a "$(rm -rf ~)" it\'s'
TIME = "2026-11-21T18:31:31.420Z"
PROBLEMS = (
    "1 line of progress.jsonl could not be read",
    "5 entries of peers.json could not be used",
    "3 entries of checkpoints.json could not be used",
    "1 entry of samples.json",
    "returned from step 5 to before step 5",
)


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def checkpoint(step: int, address: object) -> dict[str, object]:
    return {"step": step, "loss": 1.0, "time": TIME, "address": address, "sha256": f"{step:064x}"}


def test_only_files_of_the_run_and_web_pages_become_links_and_texts_and_captions_stay_texts(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    run.open()
    run.add(5)
    run.step = 4
    run.add(1)
    with run.progress.open("a") as file:
        file.write("{\n")
    card = json.loads((run.path / "run.json").read_text())
    links = {trick: trick for trick in [ELSEWHERE, *TRICKS]}
    write(run.path / "run.json", {**card, "links": links})
    run.write_people("ada", MARKUP)
    people = json.loads((run.path / "peers.json").read_text())
    bad = [None, 3, {}, {**people[0], "id": 'x" onclick="'}, {**people[0], "name": {}}]
    write(run.path / "peers.json", [*people, *bad])
    addresses = [INSIDE, ELSEWHERE, *TRICKS]
    entries = [checkpoint(step, address) for step, address in enumerate(addresses)]
    wrong = [{**checkpoint(2, None), "sha256": MARKUP}, {**checkpoint(3, None), "step": "4"}, []]
    write(run.path / "checkpoints.json", [*entries, *wrong])
    texts = ["the old cat sees a dog .", f"the old cat {MARKUP}"]
    drawn = {"step": 1, "time": TIME, "texts": [texts]}
    samples = {"prompts": [CAPTION], "checkpoints": [drawn, drawn | {"images": [[]]}]}
    write(run.path / "samples.json", samples)
    visitor = visit(server.address)
    page = visitor.open("live/")
    problems = page.locator("[data-live=problems]")
    for words in PROBLEMS:
        expect(problems).to_contain_text(words)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".checkpoints tbody tr")).to_have_count(len(addresses))
    links_of = "(links) => links.map((link) => link.href)"
    hrefs = page.locator(".checkpoints tbody a").evaluate_all(links_of)
    assert sorted(hrefs) == sorted([ELSEWHERE, f"{server.address}live/{run.path.name}/{INSIDE}"])
    assert page.locator("[data-live=about] a").evaluate_all(links_of) == [ELSEWHERE]
    expect(page.locator(".board tbody th")).to_have_text(["ada", MARKUP])
    section = page.locator("[data-live=pictures]")
    expect(section.get_by_role("heading")).to_have_text("Texts during the run")
    expect(section.locator("figure p")).to_have_text(texts)
    assert section.locator("img").count() == 0
    command = page.locator("[data-live=use-command]")
    expect(command).to_contain_text("'a \"$(rm -rf ~)\" it'\\''s'")

    images = {"step": 1, "time": TIME, "images": [["../../x.png", "samples/y.png"]]}
    write(run.path / "samples.json", {**samples, "checkpoints": [images]})
    (run.path / "peers.json").write_text("[{")
    run.add(1)
    ask_now(page)
    expect(problems).to_contain_text("peers.json cannot be read")
    section.scroll_into_view_if_needed()
    own = f"{server.address}live/{run.path.name}/samples/y.png"
    expect(section.locator("img").last).to_have_attribute("src", own)
    assert not any("x.png" in url for url in visitor.requests)
    assert page.locator("main img[src=x]").count() == 0
    assert visitor.errors == []
