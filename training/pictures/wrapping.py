"""Lines of a text beside pictures; needs Pillow alone, so that the website uses it, too."""

from PIL import ImageFont


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
