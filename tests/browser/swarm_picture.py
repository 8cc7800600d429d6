"""The recorded training of 'Train in this tab': `python -m tests.browser.swarm_picture`.

Trains in the built page to the end, which takes two cores for some minutes, and writes what the
figure shows before a visitor's click, a film for the README, and its last picture.
"""

import io
import json
from datetime import UTC, datetime

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from templates.pages.train_in_this_tab.context import RECORDED
from tools.chromium import FLAGS, find_chromium
from tools.console import ROOT
from tools.server import serving
from tools.website import SITE
from training.run.recipes import TAB

FOLDER = ROOT / "docs" / "assets" / "readme"
FRAMES = 40  # of the film
FRAME_MS, LAST_MS = 200, 4000
QUALITY = 60
PATIENCE_MS = 2_400_000
SIZE = {"width": 1100, "height": 900}
CLIP = """() => {
  const { x, y } = document.querySelector("#tab .tab__curve").getBoundingClientRect();
  const { right, bottom } = document.querySelector("#tab .tab__pictures").getBoundingClientRect();
  return { x, y, width: right - x, height: bottom - y };
}"""
REACHED = """(step) => {
  const { dataset } = document.querySelector("#tab");
  return dataset.step >= step && dataset.drawn >= 4;
}"""
OVER = """() => document.querySelector("#tab [data-start]").textContent === "Start again" """
SHOWN = """() => {
  const root = document.querySelector("#tab");
  const figures = [...root.querySelectorAll("[data-now]")];
  return {
    now: Object.fromEntries(figures.map((one) => [one.dataset.now, one.textContent])),
    points: root.querySelector("[data-line]").getAttribute("points"),
    drawings: [...root.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL("image/png")),
  };
}"""


def picture(page: Page) -> Image.Image:
    """The curve and the drawings as they are now."""
    shot = page.screenshot(clip=page.evaluate(CLIP), animations="disabled")
    return Image.open(io.BytesIO(shot)).convert("RGB")


def main() -> None:
    """Train once, and write what was seen."""
    with sync_playwright() as playwright, serving(SITE) as address:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}train-in-this-tab/")
        page.click("#tab [data-start]")
        page.evaluate("() => scrollTo(0, document.querySelector('#tab').offsetTop - 80)")
        frames = []
        for frame in range(FRAMES):
            page.wait_for_function(REACHED, arg=TAB.schedule.total_steps * frame // FRAMES)
            frames.append(picture(page))
        page.wait_for_function(OVER)
        page.wait_for_timeout(20 * FRAME_MS)  # the last drawings
        frames.append(picture(page))
        shown = page.evaluate(SHOWN)
        browser.close()
    still = FOLDER / "train-in-this-tab.webp"
    frames[-1].save(still, quality=QUALITY, method=6)
    frames[0].save(
        FOLDER / "train-in-this-tab-film.webp",
        save_all=True,
        append_images=frames[1:],
        duration=[*[FRAME_MS] * FRAMES, LAST_MS],
        loop=0,
        quality=QUALITY,
        method=6,
    )
    shown["date"] = datetime.now(UTC).date().isoformat()
    RECORDED.write_text(json.dumps(shown, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
