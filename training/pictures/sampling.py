"""Codes and pictures drawn from captions, one code after the other.

The paper draws with top-k 256 or with top-p 0.75; where both are set, top-p chooses among the k.
"""

import io
from collections.abc import Sequence

import torch
from PIL import Image
from transformers import PreTrainedModel

from calculator.errors import InputError
from training.model.captions import load_tokenizer
from training.model.language import continue_texts
from training.model.transformer import TextToImageTransformer
from training.pictures.codes import CodeModel
from training.run.recipes import GenerationSettings, ModelSettings, Recipe


@torch.no_grad()
def draw_codes(
    model: TextToImageTransformer,
    text_ids: torch.Tensor,
    settings: GenerationSettings,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Sample the codes of one picture for each caption: [B, T] to [B, I], both int64.

    Args:
        model: reads the caption once, then one code after the other with a key-value cache.
        text_ids: captions; repeat one to draw several pictures of it.
        generator: on the CPU, for pictures that can be drawn again.
    """
    logits, cache = model.start(text_ids)
    codes = [sample(logits, settings, generator)]
    for _ in range(model.config.layout.image_length - 1):
        logits = model.step(codes[-1], cache)
        codes.append(sample(logits, settings, generator))
    return torch.stack(codes, dim=1)


def sample(
    logits: torch.Tensor, settings: GenerationSettings, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Draw one code for each row of logits [B, codes]: int64 [B].

    A temperature of 0 takes the likeliest. Top-k keeps the k likeliest codes; top-p the fewest
    whose probabilities together reach p.
    """
    check(settings)
    if settings.temperature == 0:
        return logits.argmax(dim=-1)
    probabilities, order = truncate(logits, settings)
    # Drawn on the CPU: the same generator gives the same picture on every device.
    place = torch.multinomial(probabilities.cpu(), 1, generator=generator).to(order.device)
    return order.gather(1, place).squeeze(1)


def truncate(
    logits: torch.Tensor, settings: GenerationSettings
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of the codes that may be drawn, 0 for the others, and the codes: both [B, codes].

    The likeliest code comes first. The weights are proportional to probabilities.
    """
    ordered, order = (logits.float() / settings.temperature).sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    if settings.top_k is not None:
        probabilities[:, settings.top_k :] = 0
    if settings.top_p is not None:
        probabilities /= probabilities.sum(dim=-1, keepdim=True)
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities[before >= settings.top_p] = 0
    return probabilities, order


def draw(
    model: TextToImageTransformer,
    codes_model: CodeModel,
    prompts: Sequence[str],
    recipe: Recipe,
    settings: GenerationSettings | None = None,
    seed: int = 0,
    batch_size: int = 64,
) -> list[list[Image.Image]]:
    """Draw `settings.images_per_prompt` pictures for each prompt: a list for each.

    Args:
        model: the transformer; it is left in the mode (training or not) that it was in.
        recipe: names the tokenizer that turns prompts into ids.
        settings: how to sample; None takes the recipe's.
        seed: the same seed draws the same pictures.
        batch_size: pictures drawn at a time.

    Raises:
        InputError: no prompts, a prompt that the tokenizer refuses, or settings out of range.
    """
    if not prompts:
        raise InputError("prompts", prompts, "must name at least one picture")
    settings = settings or recipe.generation
    generator = torch.Generator().manual_seed(seed)
    assert isinstance(recipe.model, ModelSettings)
    tokenizer = load_tokenizer(recipe.data.tokenizer, recipe.model)
    text_ids = tokenizer(prompts).repeat_interleave(settings.images_per_prompt, dim=0)
    pictures: list[Image.Image] = []
    for batch in text_ids.split(batch_size):
        codes = draw_codes(model, batch.to(model.device), settings, generator)
        pictures += codes_model.decode(codes)
    each = settings.images_per_prompt
    return [pictures[start : start + each] for start in range(0, len(pictures), each)]


def check(settings: GenerationSettings) -> None:
    """Raise an InputError for a setting that is out of its range."""
    if settings.temperature < 0:
        raise InputError("temperature", settings.temperature, "must be at least 0")
    if settings.top_k is not None and settings.top_k < 1:
        raise InputError("top_k", settings.top_k, "must be at least 1")
    if settings.top_p is not None and not 0 < settings.top_p <= 1:
        raise InputError("top_p", settings.top_p, "must be above 0 and at most 1")
    images, keep = settings.images_per_prompt, settings.keep
    if images < 1:
        raise InputError("images", images, "must be at least 1")
    if keep is not None and not 1 <= keep <= images:
        raise InputError("keep", keep, f"must be from 1 to the {images} pictures drawn")


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
    pictures = draw(model, CodeModel.load(codes), prompts, recipe)
    return [[_to_png(picture) for picture in row] for row in pictures]


def _to_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
