"""Pictures as codes: a VQ-GAN turns a picture into W x W integers and back.

Any diffusers `VQModel` serves, from the Hugging Face Hub or a folder; a small one for the shapes
comes with the package (`benchmarks.train_codes` made it).
Source: Esser et al. 2021, arXiv:2012.09841.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image

from calculator.errors import InputError
from training.run.status import first_line

if TYPE_CHECKING:  # it takes seconds to import, and most who import this draw nothing
    from diffusers import VQModel

SHAPES_FOLDER = Path(__file__).parents[1] / "shapes" / "codes"


class CodeModel:
    """A VQ-GAN that encodes pictures into codes and decodes codes into pictures."""

    def __init__(self, model: "VQModel", device: torch.device | str = "cpu") -> None:
        self.model = model.eval().requires_grad_(False).to(device)
        self.device = torch.device(device)

    @classmethod
    def load(cls, source: str | Path, device: torch.device | str = "cpu") -> "CodeModel":
        """Load published weights.

        Args:
            source: `shapes` for the small model of the shapes; else a folder or Hub name, where
                the model may be in a subfolder `vqvae` or `vqmodel`, as diffusers' pipelines are.

        Raises:
            InputError: no VQModel is found there.
        """
        from diffusers import VQModel

        folder: str | Path = SHAPES_FOLDER if str(source) == "shapes" else source
        reasons = []
        for subfolder in (None, "vqvae", "vqmodel"):
            try:
                model = VQModel.from_pretrained(
                    folder, subfolder=subfolder, low_cpu_mem_usage=False
                )
                return cls(model, device)
            except (OSError, ValueError) as error:
                reasons.append(first_line(error))
        raise InputError("codes", source, f"must be a diffusers VQModel ({reasons[0]})")

    @property
    def codebook_size(self) -> int:
        """Codes that exist."""
        return int(self.model.config.num_vq_embeddings)

    @property
    def reduction(self) -> int:
        """Pixels along one side that share a code."""
        return int(2 ** (len(self.model.config.block_out_channels) - 1))

    @torch.no_grad()
    def encode(self, images: Sequence[Image.Image], pixels: int) -> torch.Tensor:
        """Codes of pictures.

        Args:
            images: any sizes; each is cut to a centred square and resized to `pixels`.
            pixels: side of the resized pictures, a multiple of `reduction`.

        Returns:
            int64 [B, W * W] with W = pixels / reduction, row by row.
        """
        if pixels < 1 or pixels % self.reduction:
            raise InputError("pixels", pixels, f"must be a multiple of {self.reduction}")
        if not images:
            return torch.empty((0, (pixels // self.reduction) ** 2), dtype=torch.int64)
        batch = torch.stack([to_tensor(square(image, pixels)) for image in images])
        latents = self.model.encode(batch.to(self.device)).latents
        codes: torch.Tensor = self.model.quantize(latents)[2][2]
        return codes.reshape(len(images), -1).cpu()

    @torch.no_grad()
    def decode(self, codes: torch.Tensor) -> list[Image.Image]:
        """Pictures of codes [B, W * W]."""
        side = int(codes.shape[1] ** 0.5)
        if side**2 != codes.shape[1]:
            raise InputError("codes", tuple(codes.shape), "must be [pictures, a square number]")
        shape = (len(codes), side, side, self.model.quantize.vq_embed_dim)
        latents = self.model.quantize.get_codebook_entry(codes.flatten().to(self.device), shape)
        pictures = self.model.decode(latents, force_not_quantize=True).sample
        return [to_image(picture) for picture in pictures]


def square(image: Image.Image, pixels: int) -> Image.Image:
    """The centred square of a picture, in RGB, resized to `pixels` a side."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    cut = image.convert("RGB").crop((left, top, left + side, top + side))
    if side == pixels:
        return cut
    return cut.resize((pixels, pixels), Image.Resampling.LANCZOS)


def to_tensor(image: Image.Image) -> torch.Tensor:
    """An RGB picture as float32 [3, height, width] in [-1, 1]."""
    pixels = torch.from_numpy(np.asarray(image, dtype=np.float32).copy())
    return pixels.permute(2, 0, 1) / 127.5 - 1


def to_image(picture: torch.Tensor) -> Image.Image:
    """The inverse of `to_tensor`, with values outside [-1, 1] cut off."""
    pixels = ((picture.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    return Image.fromarray(pixels.permute(1, 2, 0).cpu().numpy())
