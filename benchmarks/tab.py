"""Training in the page: seconds and processor time from Start to a loss, and pictures right."""

import time

from PIL import Image
from playwright.sync_api import Page

from benchmarks.chromium import fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table
from training.run.recipes import TAB
from training.shapes.judge import shows

LOSSES = (1.0, 0.4, 0.2)
PATIENCE_MS = 1_200_000

REACHED = """(loss) => {
  const figure = document.querySelector("#tab");
  const now = Number(figure.querySelector("[data-now=loss]").textContent);
  const isOver = figure.querySelector("[data-start]").textContent === "Start again";
  return isOver || (Number(figure.dataset.step) > 20 && now < loss);
}"""
PIXELS = """() => [...document.querySelectorAll("#tab canvas")].map((canvas) =>
  [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data])"""


def run(quick: bool) -> Table:
    """Train to the schedule's end; `quick`: to the first of the losses."""
    figures = []
    with site_with_bare_pages() as address, fresh_visit() as visit:
        page = visit.page
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}train-in-this-tab/")
        page.click("#tab [data-start]")
        began, before = time.monotonic(), visit.processor_seconds()
        for loss in LOSSES[:1] if quick else LOSSES:
            page.wait_for_function(REACHED, arg=loss, polling=200)
            figures += [
                Figure(f"to a loss of {loss}", time.monotonic() - began, "s"),
                Figure("  processor time", visit.processor_seconds() - before, "s"),
                Figure("  steps", _step(page), ""),
            ]
        if not quick:
            page.wait_for_function(REACHED, arg=0, polling=200)
            page.wait_for_timeout(5000)  # the last pictures
            figures += [
                Figure("to the end", time.monotonic() - began, "s"),
                Figure("pictures right, of 4", float(_right(page)), ""),
            ]
    return Table("Training in the page, three volunteers", figures)


def _step(page: Page) -> float:
    return float(page.get_attribute("#tab", "data-step") or 0)


def _right(page: Page) -> int:
    pictures = []
    for pixels in page.evaluate(PIXELS):
        side = round((len(pixels) / 4) ** 0.5)
        pictures.append(Image.frombytes("RGBA", (side, side), bytes(pixels)).convert("RGB"))
    return sum(map(shows, pictures, TAB.generation.prompts))
