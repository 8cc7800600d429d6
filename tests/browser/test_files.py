"""Files of a training, dropped on the calculator's page or chosen there."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import Visit, Visitor, settled
from tests.calculator.doors.test_page import asked

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

FILES = Path(__file__).parents[1] / "calculator/doors/files"
DROP = """([name, text]) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], name));
  const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
  document.querySelector("#advice").dispatchEvent(event);
}"""
# Compared with their spaces; the page shows a run before all changes to it are found.
HAS_PATCHES = """(texts) => {
  const patches = [...document.querySelectorAll(".files__run [data-part='patch']")];
  return JSON.stringify(patches.map((patch) => patch.textContent)) === JSON.stringify(texts);
}"""
# a card that holds none of these runs
SMALL = "calculator/?gpu_memory=8"
WINDOW = {"width": 1280, "height": 720}


def python_checks(*names: str, **params: str) -> list[dict[str, Any]]:
    """CPython's whole answer for files beside a state."""
    files = [{"name": name, "text": (FILES / name).read_text("utf-8")} for name in names]
    return asked(files, **params)["value"]


def opened(visitor: Visit, path: str = SMALL) -> Page:
    page = visitor.open(path)
    settled(page)
    return page


def choose(page: Page, *names: str) -> None:
    page.set_input_files("#files", [FILES / name for name in names])


def shows(page: Page, runs: list[dict[str, Any]]) -> None:
    """The page has Python's words on each run."""
    for part in ("title", "verdict", "time", "remedy"):
        shown = page.locator(f".files__run [data-part='{part}']")
        expect(shown).to_have_text([run[part] for run in runs])
    page.wait_for_function(HAS_PATCHES, arg=[run["patch"] for run in runs])
    for part in ("plan", "notes"):
        items = page.locator(f".files__run [data-part='{part}'] li")
        expect(items).to_have_text([words for run in runs for words in run[part]])


def test_files_are_read_as_the_command_line_does_by_readers_that_are_fetched_until_they_come(
    visit: Visitor,
) -> None:
    visitor = visit(viewport=WINDOW)
    visitor.page.route("**/readers.zip", lambda route: route.abort())
    page = opened(visitor)
    before = len(visitor.requests)
    page.locator("#files-link").click()
    choose(page, "axolotl.yml")
    expect(page.locator("#files-error")).to_contain_text("did not load: try again")
    visitor.page.unroute("**/readers.zip")
    for names in (
        ("axolotl.yml",),
        ("program.py",),
        ("swift.sh",),
        ("torchtitan.toml",),
        ("trl.yaml", "accelerate.yaml", "deepspeed.json"),
    ):
        choose(page, *names)
        shows(page, python_checks(*names, gpu_memory="8"))
    fetched = [url.rpartition("/")[2] for url in visitor.requests[before:]]
    assert [name for name in fetched if not name.endswith(".woff2")] == 2 * ["readers.zip"]
    assert visitor.errors == []


def test_the_answer_is_for_the_card_of_the_form_and_opens_there(visit: Visitor) -> None:
    page = opened(visit())
    page.locator("#files-link").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#files")).to_be_focused()
    choose(page, "axolotl.yml")
    (small,) = python_checks("axolotl.yml", gpu_memory="8")
    expect(page.locator(".files__run")).to_have_attribute("data-fit", small["state"])
    expect(page.get_by_role("region", name="The change as a patch")).to_be_visible()
    page.select_option("#gpu", "a100-80")
    (large,) = python_checks("axolotl.yml", gpu="a100-80")
    shows(page, [large])
    expect(page.get_by_role("region", name="The change as a patch")).to_be_hidden()
    page.get_by_role("button", name="Open this plan in the form").click()
    settled(page)
    expect(page.locator("#model")).to_have_value("Qwen/Qwen2.5-7B")
    expect(page.locator("#batch_size")).to_have_value("8")


def test_files_dropped_anywhere_are_read_and_a_config_alone_is_a_model(visit: Visitor) -> None:
    page = opened(visit())

    def drop(name: str, text: str) -> None:
        page.evaluate(DROP, [name, text])

    drop("axolotl.yml", (FILES / "axolotl.yml").read_text("utf-8"))
    shows(page, python_checks("axolotl.yml", gpu_memory="8"))
    drop("config.json", '{"model_type": "gpt2", "n_layer": 2}')
    expect(page.locator("#config")).to_have_value('{"model_type": "gpt2", "n_layer": 2}')


def test_what_is_no_training_file_is_named(visit: Visitor) -> None:
    visitor = visit()
    page = opened(visitor)
    page.locator("#files-link").click()
    for name, text, words in (
        ("run.yml", "<!doctype html><title>404</title>", "is a web page"),
        ("run.yml", "a: [", "is no YAML"),
        ("notes.txt", "hello", "must end in"),
        ("run.json", '{"name": "<img src=x onerror=alert(1)>"}', "configures no training"),
    ):
        page.set_input_files(
            "#files", {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
        )
        expect(page.locator("#files-error")).to_contain_text(words)
        expect(page.locator("#calculator-files")).not_to_have_attribute("aria-busy", "true")
        choose(page, "axolotl.yml")
        expect(page.locator("#files-error")).to_be_hidden()
    assert visitor.errors == []
