"""Pictures of the fixed prompts, as the monitor keeps them at each checkpoint."""

import io

from PIL import Image

from training.model.transformer import TextToImageTransformer
from training.pictures import sampling
from training.pictures.codes import CodeModel
from training.run.recipes import Recipe


def draw_prompts(model: TextToImageTransformer, recipe: Recipe) -> list[list[bytes]]:
    """Draw the recipe's fixed prompts, with the same seed each time: PNGs by prompt.

    Empty where the recipe names no prompts or no VQ-GAN to draw with.
    """
    prompts, codes = recipe.generation.prompts, recipe.data.codes
    if not prompts or codes is None:
        return []
    pictures = sampling.draw(model, CodeModel.load(codes), prompts, recipe)
    return [[_to_png(picture) for picture in row] for row in pictures]


def _to_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
