"""Samples of the fixed prompts, pictures or texts, as the monitor keeps them at each checkpoint."""

import io

from PIL import Image
from transformers import PreTrainedModel

from training.model.language import continue_texts
from training.model.transformer import TextToImageTransformer
from training.pictures import sampling
from training.pictures.codes import CodeModel
from training.run.recipes import Recipe


def draw_prompts(model: PreTrainedModel, recipe: Recipe) -> list[list[bytes]] | list[list[str]]:
    """PNGs drawn from the recipe's fixed prompts, or texts that go on from them, by prompt.

    The seed is the same each time. Empty where the recipe names no prompts, or no VQ-GAN to draw
    with.
    """
    prompts, codes = recipe.generation.prompts, recipe.data.codes
    if not prompts:
        return []
    if not isinstance(model, TextToImageTransformer):
        return continue_texts(model, recipe, prompts)
    if codes is None:
        return []
    pictures = sampling.draw(model, CodeModel.load(codes), prompts, recipe)
    return [[_to_png(picture) for picture in row] for row in pictures]


def _to_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
