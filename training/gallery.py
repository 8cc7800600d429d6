"""Pictures of the fixed prompts, as the monitor keeps them at each checkpoint."""

import io
from pathlib import Path

from PIL import Image

from training import contact_sheet, sampling
from training.codes import CodeModel
from training.live import LiveFolder, read_samples
from training.model import TextToImageTransformer
from training.recipes import Recipe

CONTACT_SHEET_SIDE = 128  # pixels: small pictures are magnified so far, to be looked at


def draw_prompts(model: TextToImageTransformer, recipe: Recipe) -> list[list[bytes]]:
    """Draw the recipe's fixed prompts, with the same seed each time: PNGs by prompt.

    Empty where the recipe names no prompts or no VQ-GAN to draw with.
    """
    prompts, codes = recipe.generation.prompts, recipe.data.codes
    if not prompts or codes is None:
        return []
    pictures = sampling.draw(model, CodeModel.load(codes), prompts, recipe)
    return [[_to_png(picture) for picture in row] for row in pictures]


def make_contact_sheet(live: LiveFolder, path: Path) -> bool:
    """Put the newest checkpoint's pictures on one sheet with their captions; False: none yet."""
    samples = read_samples(live.path)
    if not samples["checkpoints"]:
        return False
    newest = samples["checkpoints"][-1]
    rows = [[_open(live.path / name) for name in row] for row in newest["images"]]
    magnify = max(1, CONTACT_SHEET_SIDE // rows[0][0].width)
    contact_sheet.make(samples["prompts"], rows, magnify).save(path)
    return True


def _open(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


def _to_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
