"""The film of 'Train in this tab' in README and on Home: `python -m tests.browser.film`.

Trains in the built page, and writes what it shows as a moving picture, its last frame as a still,
and the last four drawings, which the page's share card shows.
"""

import io
from pathlib import Path
from threading import Thread

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tools.chromium import FLAGS, find_chromium
from tools.console import ROOT
from tools.server import make_server
from tools.website import SITE
from training.run.recipes import TAB

FOLDER = ROOT / "docs" / "assets"
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
PIXELS = """() => [...document.querySelectorAll("#tab canvas")].map((canvas) =>
  [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data])"""


def main() -> None:
    """Train once, and write the three files."""
    server = make_server(SITE, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"http://127.0.0.1:{server.server_port}/train-in-this-tab/")
        page.click("#tab [data-start]")
        page.evaluate("() => scrollTo(0, document.querySelector('#tab').offsetTop - 80)")
        frames, drawings = take_frames(page)
        browser.close()
    server.shutdown()
    write(frames, drawings, FOLDER)


def take_frames(page: Page) -> tuple[list[Image.Image], list[Image.Image]]:
    """Frames at even distances of steps, and the last four drawings."""
    total, frames = TAB.schedule.total_steps, []
    for number in range(1, FRAMES + 1):
        page.wait_for_function(STEPPED, arg=number * total // FRAMES, polling=50)
        if number == FRAMES:
            page.wait_for_function(DRAWN)
        picture = Image.open(io.BytesIO(page.screenshot(clip=page.evaluate(CLIP))))
        height = round(picture.height * WIDTH / picture.width)
        frames.append(picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS))
    drawings = []
    for pixels in page.evaluate(PIXELS):
        side = round((len(pixels) / 4) ** 0.5)
        drawings.append(Image.frombytes("RGBA", (side, side), bytes(pixels)).convert("RGB"))
    return frames, drawings


def write(frames: list[Image.Image], drawings: list[Image.Image], folder: Path) -> None:
    """The film, its last frame, and the drawings in a row."""
    (folder / "images").mkdir(exist_ok=True)
    size = frames[-1].size
    first, *others = [frame if frame.size == size else frame.resize(size) for frame in frames]
    durations = [FRAME_MS] * len(others) + [LAST_MS]
    first.save(
        folder / "readme" / "tab.webp",
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
        quality=60,
        method=6,
    )
    frames[-1].save(folder / "images" / "train-in-this-tab.webp", quality=80, method=6)
    side = drawings[0].width
    row = Image.new("RGB", (side * len(drawings), side))
    for place, drawing in enumerate(drawings):
        row.paste(drawing, (place * side, 0))
    row.save(folder / "readme" / "tab-drawings.png", optimize=True)


if __name__ == "__main__":
    main()
