"""Pictures drawn from captions: `python -m training generate CHECKPOINT "a red circle" ...`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from calculator.errors import InputError
from training.captions import load_tokenizer
from training.codes import CodeModel
from training.model import TextToImageTransformer
from training.recipes import RECIPES, GenerationSettings, Recipe, find_recipe

_TEXT_HEIGHT = 16  # of a caption in a contact sheet, in pixels
_GAP = 6


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
        settings: temperature, top-k and top-p.
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
    _check(settings)
    if settings.temperature == 0:
        return logits.argmax(dim=-1)
    ordered, order = (logits.float() / settings.temperature).sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    if settings.top_k is not None:
        probabilities[:, settings.top_k :] = 0
    if settings.top_p is not None:
        probabilities /= probabilities.sum(dim=-1, keepdim=True)
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities[before >= settings.top_p] = 0
    # Drawn on the CPU: the same generator gives the same picture on every device.
    place = torch.multinomial(probabilities.cpu(), 1, generator=generator).to(order.device)
    return order.gather(1, place).squeeze(1)


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
        codes_model: turns codes into pixels.
        prompts: captions.
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
    text_ids = load_tokenizer(recipe)(prompts).repeat_interleave(settings.images_per_prompt, dim=0)
    pictures: list[Image.Image] = []
    for batch in text_ids.split(batch_size):
        codes = draw_codes(model, batch.to(model.device), settings, generator)
        pictures += codes_model.decode(codes)
    each = settings.images_per_prompt
    return [pictures[start : start + each] for start in range(0, len(pictures), each)]


def contact_sheet(
    prompts: Sequence[str], pictures: Sequence[Sequence[Image.Image]], magnify: int = 1
) -> Image.Image:
    """One row of pictures under each prompt, pixels magnified."""
    width, height = pictures[0][0].size
    width, height = width * magnify, height * magnify
    columns = max(len(row) for row in pictures)
    row_height = _TEXT_HEIGHT + height + _GAP
    measure = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    text_width = max(int(measure.textlength(prompt)) for prompt in prompts)
    size = (
        max(columns * (width + _GAP), text_width) + _GAP,
        len(prompts) * row_height + _GAP,
    )
    sheet = Image.new("RGB", size, "white")
    canvas = ImageDraw.Draw(sheet)
    for row, (prompt, images) in enumerate(zip(prompts, pictures, strict=True)):
        top = _GAP + row * row_height
        canvas.text((_GAP, top), prompt, fill="black")
        for column, image in enumerate(images):
            place = (_GAP + column * (width + _GAP), top + _TEXT_HEIGHT)
            sheet.paste(image.resize((width, height), Image.Resampling.NEAREST), place)
    return sheet


def _check(settings: GenerationSettings) -> None:
    if settings.temperature < 0:
        raise InputError("temperature", settings.temperature, "must be at least 0")
    if settings.top_k is not None and settings.top_k < 1:
        raise InputError("top_k", settings.top_k, "must be at least 1")
    if settings.top_p is not None and not 0 < settings.top_p <= 1:
        raise InputError("top_p", settings.top_p, "must be above 0 and at most 1")


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m training generate", description=__doc__)
    parser.add_argument("checkpoint", help="folder or Hub name of the trained transformer")
    parser.add_argument("prompts", nargs="+", help="what to draw")
    parser.add_argument("--recipe", default="rehearsal", help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--codes", help="folder or Hub name of the VQ-GAN, else the recipe's")
    parser.add_argument("--images", type=int, help="pictures of each prompt")
    parser.add_argument("--temperature", type=float, help="below 1: surer, more alike")
    parser.add_argument("--top-k", type=int, help="codes to choose from")
    parser.add_argument("--top-p", type=float, help="probability to choose from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("pictures.png"))
    arguments = parser.parse_args(argv)
    recipe = find_recipe(arguments.recipe)
    chosen = {
        "images_per_prompt": arguments.images,
        "temperature": arguments.temperature,
        "top_k": arguments.top_k,
        "top_p": arguments.top_p,
    }
    settings = replace(
        recipe.generation, **{k: value for k, value in chosen.items() if value is not None}
    )
    name = arguments.codes or recipe.data.codes
    if name is None:
        raise InputError("codes", name, f"must be given: recipe {recipe.name} names none")
    model = load_model(arguments.checkpoint)
    codes_model = CodeModel.load(name, model.device)
    pictures = draw(model, codes_model, arguments.prompts, recipe, settings, arguments.seed)
    magnify = max(1, 128 // pictures[0][0].width)
    contact_sheet(arguments.prompts, pictures, magnify).save(arguments.output)
    print(f"{sum(map(len, pictures))} pictures: {arguments.output}")
    return 0


def load_model(checkpoint: str) -> TextToImageTransformer:
    """Load a trained transformer from a folder or the Hub, on the GPU where there is one.

    Raises:
        InputError: there is none.
    """
    try:
        model: TextToImageTransformer = TextToImageTransformer.from_pretrained(checkpoint)
    except (OSError, ValueError) as error:
        rule = f"must be a folder or Hub name of a checkpoint ({str(error).splitlines()[0]})"
        raise InputError("checkpoint", checkpoint, rule) from error
    torch.nn.Module.to(model, "cuda" if torch.cuda.is_available() else "cpu")
    torch.nn.Module.eval(model)
    return model


if __name__ == "__main__":
    raise SystemExit(main())
