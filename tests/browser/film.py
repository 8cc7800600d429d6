"""A film of 'Train in this tab' and its last frame: `python -m tests.browser.film OUT [STEPS]`.

Trains in the built page, to the end or to a step, and writes film.webp and still.webp.
"""

import io
import sys
from pathlib import Path
from threading import Thread

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tools.chromium import FLAGS, find_chromium
from tools.server import make_server
from tools.website import SITE
from training.run.recipes import TAB

FRAMES, FRAME_MS, LAST_MS = 30, 200, 4000
WIDTH = 720
PATIENCE_MS = 1_200_000
CLIP = """() => {
  const { x, y, width } = document.querySelector("#tab").getBoundingClientRect();
  const { y: end } = document.querySelector("#tab .tab__rules").getBoundingClientRect();
  return { x, y, width, height: end - y };
}"""
STEPPED = "step => Number(document.querySelector('#tab').dataset.step) >= step"
DRAWN = """() => [...document.querySelectorAll("#tab canvas")].every(({ ariaLabel }) =>
  ariaLabel.match(/\\d+/)[0] === document.querySelector("#tab").dataset.step)"""


def main(out: Path, steps: int) -> None:
    """Train once, and write both files into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    server = make_server(SITE, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"http://127.0.0.1:{server.server_port}/train-in-this-tab/")
        page.click("#tab [data-start]")
        page.evaluate("() => scrollTo(0, document.querySelector('#tab').offsetTop - 80)")
        frames = take_frames(page, steps)
        browser.close()
    server.shutdown()
    write(frames, out)


def take_frames(page: Page, steps: int) -> list[Image.Image]:
    """Frames at even distances of steps."""
    frames = []
    for number in range(1, FRAMES + 1):
        page.wait_for_function(STEPPED, arg=number * steps // FRAMES, polling=50)
        if number == FRAMES and steps == TAB.schedule.total_steps:
            page.wait_for_function(DRAWN)
        picture = Image.open(io.BytesIO(page.screenshot(clip=page.evaluate(CLIP))))
        height = round(picture.height * WIDTH / picture.width)
        frames.append(picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS))
    return frames


def write(frames: list[Image.Image], folder: Path) -> None:
    """The film, which repeats, and its last frame."""
    size = frames[-1].size
    first, *others = [frame if frame.size == size else frame.resize(size) for frame in frames]
    first.save(
        folder / "film.webp",
        save_all=True,
        append_images=others,
        duration=[FRAME_MS] * len(others) + [LAST_MS],
        loop=0,
        quality=60,
        method=4,
    )
    frames[-1].save(folder / "still.webp", quality=80, method=4)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Usage: python -m tests.browser.film OUT [STEPS]")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else TAB.schedule.total_steps)
