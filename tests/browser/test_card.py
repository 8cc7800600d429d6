"""The live page's picture to share: drawn in the page, sent nowhere."""

import io
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from templates.pieces.recorded_run import first_run
from templates.share_pictures import SIZE

pytestmark = pytest.mark.browser

RUN = first_run()
PEOPLE = sorted(RUN.peers, key=lambda peer: -peer["samples"])
ALL = sum(peer["samples"] for peer in RUN.peers)
BUTTON = "Make a picture to share"
SHARING = """() => {
  navigator.canShare = ({files}) => files.length === 1;
  navigator.share = async ({files, title, url}) => {
    window.shared = [files[0].name, files[0].type, files[0].size > 10_000, title, url];
  };
}"""


def open_card(page: Page) -> str:
    """Press the button; what the picture says."""
    page.get_by_role("button", name=BUTTON).click()
    picture = page.locator("dialog img")
    expect(picture).to_be_visible()
    return picture.get_attribute("alt") or ""


def saved(page: Page, folder: Path) -> Image.Image:
    """The picture as the visitor gets it."""
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download").click()
    assert waiting.value.suggested_filename == f"{RUN.name}-{RUN.steps[-1]['step']}.png"
    waiting.value.save_as(folder / "card.png")
    return Image.open(io.BytesIO((folder / "card.png").read_bytes()))


def test_the_picture_says_how_the_run_went_and_the_part_of_who_was_found_and_is_shared(
    archive: Page, tmp_path: Path
) -> None:
    archive.evaluate("navigator.canShare = undefined")
    words = open_card(archive)
    last = RUN.steps[-1]
    total = RUN.card["schedule"]["total_steps"]
    assert words.startswith(f"{RUN.card['title']}. Finished on ")
    assert f"after {last['step']:,} of {total:,} steps." in words
    assert f"Volunteers: {len(RUN.peers)}." in words
    assert f"Training sequences: {sum(step['samples'] for step in RUN.steps):,}." in words
    assert f"Loss: {last['loss']:.3f}." in words
    assert PEOPLE[0]["name"] not in words
    picture = saved(archive, tmp_path)
    assert picture.format == "PNG"
    assert picture.size == SIZE
    token = "getComputedStyle(document.body).getPropertyValue('--series-1').trim()"
    line = archive.evaluate(token)
    wanted = tuple(int(line[place : place + 2], 16) for place in (1, 3, 5))
    drawn = picture.convert("RGB")

    def highest(column: int) -> int:
        rows = range(280, 560)
        return next(row for row in rows if drawn.getpixel((column, row)) == wanted)

    heights = [highest(column) for column in (80, 300, 1100)]
    assert heights == sorted(heights)
    assert heights[-1] - heights[0] > 100, "the curve of the loss falls"
    archive.get_by_role("button", name="Close").click()
    second = PEOPLE[1]
    archive.get_by_label("Find me").fill(second["name"])
    words = open_card(archive)
    share = 100 * second["samples"] / ALL
    part = (
        f"{second['name']} computed {share:.1f}\u00a0% of the sequences: rank 2 of {len(PEOPLE)}."
    )
    assert part in words
    expect(archive.locator("[data-live=card-hint]")).to_be_hidden()
    assert saved(archive, tmp_path).tobytes() != picture.tobytes()
    expect(archive.get_by_role("button", name="Share …")).to_be_hidden()  # not in this browser
    archive.keyboard.press("Escape")
    expect(archive.locator("dialog")).to_be_hidden()
    expect(archive.get_by_role("button", name=BUTTON)).to_be_focused()
    archive.get_by_label("Find me").fill("")
    archive.get_by_role("link", name=second["name"]).click()
    assert part in open_card(archive)
    archive.get_by_role("button", name="Close").click()
    asked: list[str] = []
    archive.on("request", lambda request: asked.append(request.url))
    archive.evaluate(SHARING)
    open_card(archive)
    archive.get_by_role("button", name="Share …").click()
    expect(archive.locator("dialog")).to_be_hidden()
    name = f"{RUN.name}-{RUN.steps[-1]['step']}.png"
    shared = [name, "image/png", True, RUN.card["title"], archive.url]
    assert archive.evaluate("window.shared") == shared
    assert [url for url in asked if not url.startswith("blob:")] == []
