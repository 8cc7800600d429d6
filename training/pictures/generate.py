"""Pictures or texts of prompts: `python -m training generate CHECKPOINT "a red circle" ...`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from transformers import PreTrainedModel

from calculator.errors import InputError
from training.model import checkpoint as published
from training.model.checkpoint import CheckpointError
from training.model.language import continue_texts
from training.model.transformer import TextToImageTransformer
from training.pictures import sampling
from training.pictures.codes import CodeModel
from training.pictures.wrapping import wrap
from training.run import atomic, download
from training.run.recipes import RECIPES, GenerationSettings, Recipe, find_recipe
from training.run.status import first_line

_SHOWN_SIDE = 128  # pixels: smaller pictures are magnified up to it, to be looked at


@dataclass(frozen=True)
class Drawing:
    """Pictures of prompts, a row for each; where a scorer chose, the best first.

    Attributes:
        scores: cosine of each picture with its prompt, as CLIP sees it; None without a scorer.
        drawn: pictures of each prompt, of which those in `rows` were kept.
    """

    prompts: Sequence[str]
    rows: list[list[Image.Image]]
    scores: list[list[float]] | None
    drawn: int

    def sheet(self) -> Image.Image:
        """All pictures under their prompts; small ones are magnified."""
        magnify = max(1, _SHOWN_SIDE // self.rows[0][0].width)
        return make_sheet(self.prompts, self.rows, magnify)

    def save(self, path: Path) -> None:
        """Write the sheet as a PNG, whole or not at all."""
        with atomic.replacing(path) as temporary:
            self.sheet().save(temporary, format="PNG")

    @property
    def share(self) -> str:
        """Number of pictures drawn for a prompt and kept, in words."""
        kept = len(self.rows[0])
        best = "" if kept == self.drawn else f"the best {kept} of "
        return f"{best}{self.drawn} pictures"


def illustrate(
    checkpoint: str | PreTrainedModel,
    prompts: Sequence[str],
    recipe: Recipe | None = None,
    settings: GenerationSettings | None = None,
    codes: str | None = None,
    seed: int = 0,
) -> Drawing:
    """Draw prompts with a trained model, and keep the pictures that fit best.

    Args:
        checkpoint: a folder or file of a checkpoint, a live folder or its address, or a Hub name;
            or a model that is loaded already.
        recipe: None: the one that the checkpoint names.
        settings: None: the recipe's.
        codes: folder or Hub name of the VQ-GAN; None: the recipe's.
        seed: the same seed draws the same pictures.

    Raises:
        InputError: a part is not there, or a setting out of range.
    """
    model = load_model(checkpoint) if isinstance(checkpoint, str) else checkpoint
    if not isinstance(model, TextToImageTransformer):
        raise InputError("checkpoint", checkpoint, "must be of a text-to-image model")
    recipe = recipe or _recipe_of(model)
    settings = settings or recipe.generation
    sampling.check(settings)
    name = codes or recipe.data.codes
    if name is None:
        raise InputError("codes", name, f"must be given: recipe {recipe.name} names none")
    rows = sampling.draw(model, CodeModel.load(name, model.device), prompts, recipe, settings, seed)
    if settings.keep is None:
        return Drawing(prompts, rows, None, settings.images_per_prompt)
    return _keep_best(prompts, rows, settings, str(model.device))


def _keep_best(
    prompts: Sequence[str], rows: list[list[Image.Image]], settings: GenerationSettings, device: str
) -> Drawing:
    from training.pictures.rerank import Scorer

    if settings.scorer is None:
        raise InputError("scorer", None, "must be given to keep the best pictures")
    scorer = Scorer.load(settings.scorer, device)
    kept, scores = [], []
    for prompt, pictures in zip(prompts, rows, strict=True):
        chosen = scorer.choose(pictures, prompt, settings.keep or 1)
        kept.append([pictures[place] for place, _ in chosen])
        scores.append([score for _, score in chosen])
    return Drawing(prompts, kept, scores, settings.images_per_prompt)


def main(argv: list[str]) -> int:
    """Run the command line."""
    arguments = _make_parser().parse_args(argv)
    model = load_model(arguments.checkpoint)
    recipe = find_recipe(arguments.recipe) if arguments.recipe else _recipe_of(model)
    chosen = {
        "images_per_prompt": arguments.images,
        "keep": arguments.keep,
        "scorer": arguments.scorer,
        "temperature": arguments.temperature,
        "top_k": arguments.top_k,
        "top_p": arguments.top_p,
    }
    settings = replace(
        recipe.generation, **{k: value for k, value in chosen.items() if value is not None}
    )
    if not isinstance(model, TextToImageTransformer):
        for row in continue_texts(model, recipe, arguments.prompts, settings, arguments.seed):
            print(*row, sep="\n")
        return 0
    print(f"drawing {settings.images_per_prompt} pictures of each prompt", file=sys.stderr)
    drawing = illustrate(
        model, arguments.prompts, recipe, settings, arguments.codes, arguments.seed
    )
    drawing.save(arguments.output)
    print(f"{drawing.share} of each of {len(drawing.prompts)}: {arguments.output}")
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training generate", description=__doc__)
    parser.add_argument(
        "checkpoint",
        help="folder or file of the model, a run's live folder or its address, or a Hub name",
    )
    parser.add_argument("prompts", nargs="+", help="what to draw, or to continue")
    parser.add_argument("--recipe", help=f"one of {', '.join(RECIPES)}; else the checkpoint's")
    parser.add_argument("--codes", help="folder or Hub name of the VQ-GAN, else the recipe's")
    parser.add_argument("--images", type=int, help="pictures or texts of each prompt")
    parser.add_argument("--keep", type=int, help="number of the best of these to keep, by CLIP")
    parser.add_argument("--scorer", help="folder or Hub name of the CLIP, else the recipe's")
    parser.add_argument(
        "--temperature", type=float, help="below 1: surer choices, more similar pictures"
    )
    parser.add_argument("--top-k", type=int, help="number of likeliest codes to choose from")
    parser.add_argument(
        "--top-p", type=float, help="probability of the likeliest codes to choose from"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output", "--out", type=Path, default=Path("pictures.png"), help="PNG of all pictures"
    )
    return parser


def load_model(checkpoint: str) -> PreTrainedModel:
    """Load a trained model, on the GPU where there is one.

    Args:
        checkpoint: as in `illustrate`; of a live folder, the newest one.

    Raises:
        InputError: there is none.
    """
    try:
        model = _load(checkpoint)
    except (OSError, CheckpointError) as error:
        rule = (
            "must be a folder, file or Hub name of a checkpoint, or a live folder or its address "
            f"({first_line(error)})"
        )
        raise InputError("checkpoint", checkpoint, rule) from error
    torch.nn.Module.to(model, "cuda" if torch.cuda.is_available() else "cpu")
    torch.nn.Module.eval(model)
    return model


def _load(checkpoint: str) -> PreTrainedModel:
    path = Path(checkpoint)
    if download.is_web(checkpoint) or (path / "checkpoints.json").exists():
        return published.fetch(checkpoint)[1]
    if not path.is_file():
        return published.load(checkpoint)
    return published.load_files(path, path.with_name(published.CONFIG))


def _recipe_of(model: PreTrainedModel) -> Recipe:
    return find_recipe(model.config.recipe or "rehearsal")


_MARGIN, _GAP = 16, 6  # pixels
_TEXT_SIZE, _LINE_HEIGHT = 15, 20
_SMALLEST_WIDTH = 360  # for captions of few pictures
_BACKGROUND, _INK = "white", "#1f2328"


def make_sheet(
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
