"""The live page's box to draw one's own caption: the recorded run's model, run in the page."""

import hashlib
import re
import shutil
import time
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from templates.pieces.recorded_run import LIVE, first_run
from tests.browser.visits import Visitor, ask_now
from tests.browser.written_run import LiveServer, WrittenRun
from training.run.live import CheckpointEntry, LiveFolder, timestamp

pytestmark = pytest.mark.browser

RUN = first_run()
FILE = RUN.folder / str(LiveFolder(LIVE / RUN.name).read_checkpoints()[-1].drawing)
WEIGHTS = "drawing.safetensors"
FIRST_PIXELS = """() => [...document.querySelectorAll("[data-live=drawn] canvas")].map((canvas) =>
  [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].join())"""
RED = """() => [...document.querySelectorAll("[data-live=drawn] canvas")].map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const places = Array.from({length: data.length / 4}, (_, place) => 4 * place);
  return places.filter((at) => data[at] > 150 && data[at + 1] < 100 && data[at + 2] < 100).length;
})"""


def ask(page: Page, caption: str) -> None:
    """Type a caption and press Enter."""
    field = page.locator("#live-caption")
    field.fill(caption)
    field.press("Enter")


def drawn(page: Page, caption: str) -> list[str]:
    """The pixels of the pictures of a caption, once they are there."""
    canvases = page.locator("[data-live=drawn] canvas")
    expect(page.locator("[data-live=draw-status]")).to_contain_text("rawn in")
    expect(canvases).to_have_count(4)
    expect(page.locator("[data-live=drawn] figcaption")).to_have_text(caption)
    return page.evaluate(FIRST_PIXELS)


def write_checkpoint(run: WrittenRun, sha256: str, step: int = 2) -> None:
    """List a checkpoint whose file for the page has that sum."""
    drawing = f"checkpoints/{step:06d}/{WEIGHTS}"
    (run.path / drawing).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(FILE, run.path / drawing)
    entry = CheckpointEntry(step, 3.0, timestamp(time.time()), None, f"{step:064x}")
    fields = {"drawing": drawing, "drawing_sha256": sha256}
    fields |= {"drawing_bytes": FILE.stat().st_size}
    run.live.write_checkpoints([CheckpointEntry(**(vars(entry) | fields))])


def test_a_caption_becomes_pictures_by_keyboard_and_a_seed_decides_which(visit: Visitor) -> None:
    visitor = visit()
    page = visitor.open("live/")
    button = page.locator("[data-live=draw-button]")
    expect(button).to_have_text(re.compile(r"Download 1\.\d\d\sMiB and draw"))
    assert not [url for url in visitor.requests if WEIGHTS in url or "drawing-worker" in url]
    ask(page, "a purple circle")
    error = page.locator("[data-live=draw-error]")
    expect(error).to_have_text(re.compile("The model never saw the word “purple”. It knows these:"))
    expect(page.locator("#live-caption")).to_have_attribute("aria-invalid", "true")
    ask(page, " ")
    expect(error).to_have_text("Type a caption first.")
    ask(page, "a red circle")
    first = drawn(page, "a red circle")
    words = "a red circle: drawing 1"
    expect(page.locator("[data-live=drawn] canvas").first).to_have_attribute("aria-label", words)
    expect(button).to_have_text("Draw")
    expect(error).to_be_hidden()
    expect(page.locator("#live-caption")).not_to_have_attribute("aria-invalid", "true")
    # A circle of 8 pixels or more in radius, on 32 by 32, in each of the pictures.
    assert all(150 < pixels < 512 for pixels in page.evaluate(RED))
    page.get_by_label("Seed").fill("7")
    page.keyboard.press("Enter")
    expect(page.locator("[data-live=drawn]")).to_have_attribute("data-order", "3")
    assert drawn(page, "a red circle") != first
    page.get_by_label("Seed").fill("1")
    button.click()
    expect(page.locator("[data-live=drawn]")).to_have_attribute("data-order", "4")
    assert drawn(page, "a red circle") == first
    assert len([url for url in visitor.requests if WEIGHTS in url]) == 1
    assert visitor.errors == []


def test_a_run_without_weights_or_with_some_of_elsewhere_has_no_box(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    run.open()
    run.add(3)
    run.write_checkpoints(2)
    page = visit(server.address).open("live/")
    for step in (4, 5, 6):
        expect(page.locator("[data-live=step]")).to_have_text(str(step - 1))
        expect(page.locator(".checkpoints tbody tr")).to_have_count(1)
        expect(page.locator("[data-live=draw]")).to_be_hidden()
        write_checkpoint(run, "0" * 64)
        (entry,) = run.live.read_checkpoints()
        drawing = ("../w.safetensors", "https://example.org/w.safetensors")[step % 2]
        run.live.write_checkpoints([replace(entry, drawing=drawing)])
        run.add(1)
        ask_now(page)


UNUSABLE = {
    "sum": "The page cannot draw: the file is not the one that the run lists.",
    "file": "The page cannot draw: the server has no such file (404).",
    "server": "The page cannot draw: the server does not respond.",
}


def test_weights_that_cannot_be_used_are_told_and_asked_for_again(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, run = stage
    run.open()
    run.add(3)
    right = hashlib.sha256(FILE.read_bytes()).hexdigest()
    page = visit(server.address).open("live/")
    for step, (wrong, words) in enumerate(UNUSABLE.items(), start=4):
        offer(page, run, "0" * 64 if wrong == "sum" else right, step)
        page.locator("#live-caption").fill("a red circle")
        if wrong == "file":
            (run.path / "checkpoints" / f"{step:06d}" / WEIGHTS).unlink()
        if wrong == "server":
            page.route(f"**/{WEIGHTS}", lambda route: route.abort())
        page.locator("#live-caption").press("Enter")
        expect(page.locator("[data-live=draw-error]")).to_contain_text(words)
        page.unroute_all()
    offer(page, run, right, step + 1)
    page.locator("#live-caption").press("Enter")
    drawn(page, "a red circle")
    expect(page.locator("[data-live=draw-error]")).to_be_hidden()


def offer(page: Page, run: WrittenRun, sha256: str, step: int) -> None:
    """List a checkpoint of that step, and wait until the page knows it."""
    write_checkpoint(run, sha256, step)
    run.add(1)
    ask_now(page)
    expect(page.locator("[data-live=step]")).to_have_text(str(step))
    expect(page.locator("[data-live=draw]")).to_be_visible()
