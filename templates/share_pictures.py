"""The pictures that messengers show beside a shared address: a page's title and a motif."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mkdocs.utils.meta import get_data
from PIL import Image, ImageDraw, ImageFont

from tools.console import ROOT
from training.pictures.wrapping import wrap

SIZE = (1200, 630)
# Drawn larger, then reduced: lines and discs get smooth edges.
SCALE = 2
MARGIN = 72
FONT = ROOT / "docs" / "assets" / "fonts" / "archivo.woff2"
SITE_NAME = "Training Transformers Together"

# The light scheme of base.css.
PAPER, LINE, INK, MUTED, LIMIT = "#fbfcfe", "#cdd7e4", "#12203a", "#4a5972", "#c92a2a"
PARTS = ("#2f5fd0", "#12897a", "#bf7b00", "#8b48c9", "#6b7890")
# Shares of the box, bar by bar, as memory-saving techniques are added.
BARS = ((0.28, 0.0, 0.56, 0.46), (0.03, 0.0, 0.07, 0.34), (0.03, 0.02, 0.06, 0.02), (0.03, 0.02))
# What tests/browser/swarm_picture.py took, the drawings in it, and their corner on the card.
TAB = ROOT / "docs" / "assets" / "readme" / "train-in-this-tab.webp"
DRAWINGS = (656, 0, 1068, 456)
TAB_PLACE = (740 * SCALE, 90 * SCALE)
DISCS = (34, 20, 27, 15, 30, 18, 24, 13, 22, 16)


@dataclass(frozen=True, slots=True)
class Words:
    """Texts on a page's picture."""

    name: str
    title: str
    description: str
    motif: str


def draw_share_pictures(docs: Path) -> None:
    """Draw assets/share/NAME.png for every page in `docs`; a folder of pages shares one."""
    folder = docs / "assets" / "share"
    folder.mkdir(parents=True, exist_ok=True)
    for words in words_of(docs):
        draw(words).save(folder / f"{words.name}.png", optimize=True)


def words_of(docs: Path) -> Iterator[Words]:
    """The title and description in each page's head, by name; folders by their index."""
    for path in sorted([*docs.glob("*.md"), *docs.glob("*/index.md")]):
        _, meta = get_data(path.read_text("utf-8"))
        name = path.stem if path.parent == docs else path.parent.name
        title = SITE_NAME if name == "index" else str(meta.get("title", name))
        # `picture: memory` in a page's head: bars; `picture: tab`: drawings; else volunteers.
        yield Words(name, title, str(meta.get("description", "")), str(meta.get("picture", "")))


def draw(words: Words) -> Image.Image:
    """One picture of `SIZE` pixels."""
    picture = Image.new("RGB", (SIZE[0] * SCALE, SIZE[1] * SCALE), PAPER)
    pen = ImageDraw.Draw(picture)
    match words.motif:
        case "memory":
            _draw_bars(pen)
        case "tab":
            drawings = Image.open(TAB).crop(DRAWINGS)
            picture.paste(drawings.resize([SCALE * side for side in drawings.size]), TAB_PLACE)
        case _:
            _draw_swarm(pen)
    _draw_words(pen, words)
    return picture.resize(SIZE, Image.Resampling.LANCZOS)


def _font(size: int, weight: int, width: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(str(FONT), size * SCALE)
    font.set_variation_by_axes([weight, width])
    return font


def _draw_words(pen: ImageDraw.ImageDraw, words: Words) -> None:
    left, width = MARGIN * SCALE, 610 * SCALE
    title = _font(72 if len(words.title) < 24 else 62, 740, 116)
    y = MARGIN * SCALE
    if words.title != SITE_NAME:
        pen.text((left, y), SITE_NAME, MUTED, _font(26, 600, 108))
    y += 70 * SCALE
    for text, font, colour, leading, lines in (
        (words.title, title, INK, 1.08, 4),
        (words.description, _font(29, 420, 100), MUTED, 1.42, 4),
    ):
        for line in _wrapped(text, font, width, lines):
            pen.text((left, y), line, colour, font)
            y += int(font.size * leading)
        y += 34 * SCALE


def _wrapped(text: str, font: ImageFont.FreeTypeFont, width: int, limit: int) -> list[str]:
    """`text` in at most `limit` lines of `width`; what is left out leaves an ellipsis."""
    lines = wrap(text, font, width)
    if len(lines) > limit:
        lines = [*lines[: limit - 1], lines[limit - 1].rstrip(".,;:") + " \N{HORIZONTAL ELLIPSIS}"]
    return lines


def _draw_bars(pen: ImageDraw.ImageDraw) -> None:
    left, top, width, height = 760, 150, 330, 62
    for row, shares in enumerate(BARS):
        y, x = top + row * (height + 26), float(left)
        pen.rectangle(_box(left, y, left + width, y + height), "#eff3f9")
        for share, colour in zip(shares, (PARTS[0], PARTS[1], PARTS[2], PARTS[3]), strict=False):
            if share:
                pen.rectangle(_box(x, y, x + share * width - 2, y + height), colour)
            x += share * width
        pen.rectangle(_box(left + width - 3, y, left + width + 1, y + height), LIMIT)


def _draw_swarm(pen: ImageDraw.ImageDraw) -> None:
    centre, radius = (940.0, 315.0), 190.0
    places = [
        (
            centre[0] + radius * math.sin(2 * math.pi * index / len(DISCS)),
            centre[1] - radius * math.cos(2 * math.pi * index / len(DISCS)),
        )
        for index in range(len(DISCS))
    ]
    for index, first in enumerate(places):
        for second in places[index + 1 :]:
            ends = [coordinate * SCALE for coordinate in (*first, *second)]
            pen.line(ends, LINE, SCALE)
    for (x, y), size, colour in zip(places, DISCS, PARTS * 2, strict=True):
        pen.ellipse(_box(x - size, y - size, x + size, y + size), colour, PAPER, 4 * SCALE)


def _box(left: float, top: float, right: float, bottom: float) -> list[float]:
    return [coordinate * SCALE for coordinate in (left, top, right, bottom)]
