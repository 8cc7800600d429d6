"""Training in the page: seconds and processor time from Start to a loss, and pictures right."""

import time

from PIL import Image
from playwright.sync_api import Page

from benchmarks.chromium import Visit, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table
from benchmarks.seeing import shows
from training.run.recipes import TAB

LOSSES = (1.0, 0.4)
MINUTES = (1, 2, 3)
LOOK_MS = 500

NOW = """() => {
  const figure = document.querySelector("#tab");
  return {
    loss: Number(figure.querySelector("[data-now=loss]").textContent),
    step: Number(figure.dataset.step ?? 0),
    isOver: figure.querySelector("[data-start]").textContent === "Start again",
  };
}"""
PIXELS = """() => [...document.querySelectorAll("#tab canvas")].map((canvas) =>
  [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data])"""


def run(quick: bool) -> Table:
    """Train to the schedule's end; `quick`: to the first of the losses."""
    with site_with_bare_pages() as address, fresh_visit() as visit:
        visit.page.goto(f"{address}train-in-this-tab/")
        visit.page.click("#tab [data-start]")
        figures = _follow(visit, quick)
    return Table("Training in the page, three volunteers", figures)


def _follow(visit: Visit, quick: bool) -> list[Figure]:
    """Seconds until losses are reached, pictures after whole minutes, and the end."""
    page, figures = visit.page, list[Figure]()
    began, before = time.monotonic(), visit.processor_seconds()
    losses, minutes = list(LOSSES), list(MINUTES)
    while True:
        page.wait_for_timeout(LOOK_MS)
        now, seconds = page.evaluate(NOW), time.monotonic() - began
        while losses and now["step"] > 20 and now["loss"] < losses[0]:
            spent = visit.processor_seconds() - before
            figures += [
                Figure(f"to a loss of {losses.pop(0):g}", seconds, "s"),
                Figure("  processor time", spent, "s"),
                Figure("  steps", now["step"], ""),
            ]
            if quick:
                return figures
        while minutes and seconds >= 60 * minutes[0]:
            figures.append(Figure(f"pictures right after {minutes.pop(0)} min", _right(page), "%"))
        if now["isOver"]:
            page.wait_for_timeout(10 * LOOK_MS)  # the last pictures
            spent = visit.processor_seconds() - before
            return [
                *figures,
                Figure("to the end", seconds, "s"),
                Figure("  processor time", spent, "s"),
                Figure("  loss", now["loss"], ""),
                Figure("  pictures right", _right(page), "%"),
            ]


def _right(page: Page) -> float:
    """The share of the four pictures that show their captions."""
    prompts, right = TAB.generation.prompts, 0
    for pixels, caption in zip(page.evaluate(PIXELS), prompts, strict=False):
        side = round((len(pixels) / 4) ** 0.5)
        picture = Image.frombytes("RGBA", (side, side), bytes(pixels)).convert("RGB")
        right += shows(picture, caption)
    return 100 * right / len(prompts)
