"""Pictures on one sheet, a row under each caption."""

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

_MARGIN, _GAP = 16, 6  # pixels
_TEXT_SIZE, _LINE_HEIGHT = 15, 20
_SMALLEST_WIDTH = 360  # for captions of few pictures
_BACKGROUND, _INK = "white", "#1f2328"


def make(
    captions: Sequence[str], rows: Sequence[Sequence[Image.Image]], magnify: int = 1
) -> Image.Image:
    """One row of pictures under each caption, pixels magnified; long captions are wrapped.

    Args:
        captions: one for each row. rows: pictures of one size, at least one in all.
        magnify: how many pixels a side a pixel becomes.
    """
    font = ImageFont.load_default(_TEXT_SIZE)
    width, height = rows[0][0].size
    width, height = width * magnify, height * magnify
    inside = max(max(len(row) for row in rows) * (width + _GAP) - _GAP, _SMALLEST_WIDTH)
    texts = [wrap(caption, font, inside) for caption in captions]
    row_heights = [len(lines) * _LINE_HEIGHT + _GAP + height + _MARGIN for lines in texts]
    sheet = Image.new("RGB", (inside + 2 * _MARGIN, sum(row_heights) + _MARGIN), _BACKGROUND)
    canvas = ImageDraw.Draw(sheet)
    top = _MARGIN
    for lines, images, row_height in zip(texts, rows, row_heights, strict=True):
        for number, line in enumerate(lines):
            canvas.text((_MARGIN, top + number * _LINE_HEIGHT), line, fill=_INK, font=font)
        below = top + len(lines) * _LINE_HEIGHT + _GAP
        for column, image in enumerate(images):
            picture = image.resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(picture, (_MARGIN + column * (width + _GAP), below))
        top += row_height
    return sheet


def wrap(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> list[str]:
    """Lines of a text that are not wider than so many pixels; a longer word has its own line."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
