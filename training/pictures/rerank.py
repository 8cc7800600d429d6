"""CLIP chooses: of many pictures drawn from a caption, those that fit it best.

Any `CLIPModel` of transformers serves, from the Hugging Face Hub or a folder; a small one for the
shapes comes with the package (`benchmarks.train_scorer` made it). The 2021 run kept 4 of 128
pictures with `openai/clip-vit-base-patch32`. Source: Radford et al. 2021, arXiv:2103.00020.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.nn import functional
from transformers import AutoImageProcessor, AutoTokenizer, CLIPModel

from calculator.errors import InputError
from training.run.status import first_line

SHAPES_FOLDER = Path(__file__).parents[1] / "shapes" / "scorer"
_BATCH = 64


class Scorer:
    """A CLIP model with the tokenizer and the image processor that it was trained with."""

    def __init__(self, model: CLIPModel, tokenizer: Any, image_processor: Any) -> None:
        self.model: Any = model.eval()
        self.tokenizer, self.image_processor = tokenizer, image_processor

    @classmethod
    def load(cls, source: str | Path, device: torch.device | str = "cpu") -> "Scorer":
        """Load published weights.

        Args:
            source: `shapes` for the small model of the shapes; else a folder or Hub name.

        Raises:
            InputError: no CLIP model is found there.
        """
        folder = SHAPES_FOLDER if str(source) == "shapes" else source
        try:
            model: Any = CLIPModel.from_pretrained(folder)
            tokenizer = AutoTokenizer.from_pretrained(folder)
            images = AutoImageProcessor.from_pretrained(folder, backend="pil")
        except (OSError, ValueError) as error:
            rule = f"must be a CLIP model of transformers ({first_line(error)})"
            raise InputError("scorer", source, rule) from error
        return cls(model.float().to(device), tokenizer, images)

    def save(self, folder: Path) -> None:
        """Write weights in 16 bits, tokenizer and image processor, as `load` reads them."""
        self.model.half().save_pretrained(folder)
        self.model.float()
        self.tokenizer.save_pretrained(folder)
        self.image_processor.save_pretrained(folder)

    def read_images(self, images: Sequence[Image.Image]) -> torch.Tensor:
        """Pictures as the model reads them: float32 [N, 3, height, width]."""
        read = self.image_processor(images=list(images), return_tensors="pt")
        pixels: torch.Tensor = read["pixel_values"].to(self.model.device)
        return pixels

    def read_captions(self, captions: Sequence[str]) -> dict[str, torch.Tensor]:
        """Captions as the model reads them: `input_ids` and `attention_mask`, int64 [M, T]."""
        read = self.tokenizer(list(captions), padding=True, truncation=True, return_tensors="pt")
        names = ("input_ids", "attention_mask")
        return {name: read[name].to(self.model.device) for name in names}

    @torch.no_grad()
    def compare(self, images: Sequence[Image.Image], captions: Sequence[str]) -> torch.Tensor:
        """Cosines between pictures and captions: float32 [N, M] on the CPU, in [-1, 1]."""
        parts = [images[start : start + _BATCH] for start in range(0, len(images), _BATCH)]
        text = self.model.get_text_features(**self.read_captions(captions)).pooler_output
        text = functional.normalize(text, dim=-1)
        scores = []
        for part in parts:
            seen = self.model.get_image_features(self.read_images(part)).pooler_output
            scores.append(functional.normalize(seen, dim=-1) @ text.T)
        return torch.cat(scores).float().cpu()

    def choose(
        self, images: Sequence[Image.Image], caption: str, keep: int
    ) -> list[tuple[int, float]]:
        """Place and score of the pictures that fit a caption best, the best first.

        Raises:
            InputError: `keep` is below 1 or above the number of pictures.
        """
        if not 1 <= keep <= len(images):
            raise InputError("keep", keep, f"must be from 1 to the {len(images)} pictures drawn")
        scores = self.compare(images, [caption])[:, 0]
        best: list[int] = scores.argsort(descending=True, stable=True)[:keep].tolist()
        return [(place, float(scores[place])) for place in best]
