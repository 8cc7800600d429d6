"""The picture of 'Train in this tab' on Home: `python -m tests.browser.swarm_picture`.

Trains in the built page until most pictures show a shape, which takes a core for some minutes, and
writes the curve and the drawings in both color schemes.
"""

import io

from PIL import Image
from playwright.sync_api import sync_playwright

from tools.chromium import FLAGS, find_chromium
from tools.console import ROOT
from tools.server import serving
from tools.website import SITE

FOLDER = ROOT / "docs" / "assets" / "readme"
SCHEMES = {"light": "default", "dark": "slate"}
LOSS = 0.3  # most pictures match their captions near 0.2
PATIENCE_MS = 2_400_000
LEARNED = f"""() => {{
  const root = document.querySelector("#tab");
  const loss = Number(root.querySelector("[data-now=loss]").textContent);
  return loss && loss < {LOSS} && root.dataset.drawn % 4 === 0;  // all four, of the same step
}}"""
COLOR = "scheme => document.body.setAttribute('data-md-color-scheme', scheme)"
CLIP = """() => {
  const { x, y } = document.querySelector("#tab .tab__curve").getBoundingClientRect();
  const { right, bottom } = document.querySelector("#tab .tab__pictures").getBoundingClientRect();
  return { x, y, width: right - x, height: bottom - y };
}"""


def main() -> None:
    """Train once, and write a picture for each color scheme."""
    with sync_playwright() as playwright, serving(SITE) as address:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}train-in-this-tab/")
        page.click("#tab [data-start]")
        page.evaluate("() => scrollTo(0, document.querySelector('#tab').offsetTop - 80)")
        page.wait_for_function(LEARNED)
        page.click("#tab [data-start]")
        for name, scheme in SCHEMES.items():
            page.evaluate(COLOR, scheme)
            shot = page.screenshot(clip=page.evaluate(CLIP), animations="disabled")
            Image.open(io.BytesIO(shot)).convert("RGB").save(
                FOLDER / f"train-in-this-tab-{name}.webp", quality=75, method=6
            )
        browser.close()


if __name__ == "__main__":
    main()
