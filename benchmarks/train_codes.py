"""Train the small VQ-GAN of the shapes: `python -m benchmarks.train_codes`.

Shapes have flat colours and few textures, so a reconstruction loss suffices: neither the
discriminator nor the perceptual loss of a VQ-GAN for photographs is used. Instead, the encoder
learns to look only at what is near: with no attention, and with a loss where a place's latents
change with the other half of the picture. Then equal parts have equal codes, and a transformer
learns them from fewer pictures.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional
from tqdm import tqdm

from training.pictures.codes import SHAPES_FOLDER, CodeModel, to_image, to_tensor
from training.shapes.samples import draw_sample

if TYPE_CHECKING:  # it takes seconds to import
    from diffusers import VQModel

_PIXELS = 32
_HELD_OUT_SEED = 1


def new_model(seed: int = 0) -> "VQModel":
    """A VQModel with new weights: 32 x 32 pixels to 8 x 8 codes of 128."""
    from diffusers import VQModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return VQModel(
            down_block_types=("DownEncoderBlock2D",) * 3,
            up_block_types=("UpDecoderBlock2D",) * 3,
            block_out_channels=(16, 32, 32),
            latent_channels=8,
            sample_size=_PIXELS,
            num_vq_embeddings=128,
            norm_num_groups=8,
            mid_block_add_attention=False,
        )


def draw_batch(start: int, count: int, seed: int = 0) -> torch.Tensor:
    """Varied pictures `start` to `start + count` of the shapes: float32 [count, 3, 32, 32]."""
    indices = range(start, start + count)
    return torch.stack(
        [to_tensor(draw_sample(index, _PIXELS, seed, varied=True).image) for index in indices]
    )


def train(model: "VQModel", steps: int, batch_size: int, learning_rate: float = 2e-3) -> None:
    """Train in place, with AdamW and a linear decay to zero."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, steps)
    progress = tqdm(range(steps), desc="VQ-GAN", unit="step")
    for step in progress:
        pictures = draw_batch(step * batch_size, batch_size)
        latents = model.encode(pictures).latents
        output = model.decode(latents)
        reconstruction = functional.mse_loss(output.sample, pictures)
        loss = reconstruction + output.commit_loss.mean()
        loss = loss + _sensitivity(model, pictures, latents, step)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            progress.set_postfix(psnr=f"{_psnr(reconstruction.detach()):.1f} dB")


def _sensitivity(
    model: "VQModel", pictures: torch.Tensor, latents: torch.Tensor, turn: int
) -> torch.Tensor:
    """Change of latents when the other half of their picture changes, relative to their variance.

    Each picture's upper, left, lower or right half, by `turn`, is put into the next picture; the
    latents well inside that half are compared.
    """
    axis, is_first = 2 + turn % 2, turn % 4 < 2
    side, width = pictures.shape[axis], latents.shape[axis]
    inside = 3 * width // 8
    half, start = side // 2, 0 if is_first else side // 2
    mixed = pictures.roll(1, dims=0).index_copy(
        axis, torch.arange(start, start + half), pictures.narrow(axis, start, half)
    )
    place = (axis, 0 if is_first else width - inside, inside)
    others = model.encode(mixed).latents.narrow(*place)
    return functional.mse_loss(others, latents.narrow(*place)) / latents.detach().var()


def evaluate(model: "VQModel", count: int = 256) -> tuple[float, int]:
    """Peak signal-to-noise ratio on held-out pictures in dB, and how many codes they use."""
    codes = CodeModel(model)
    pictures = draw_batch(0, count, _HELD_OUT_SEED)
    with torch.no_grad():
        error = functional.mse_loss(model(pictures).sample.clamp(-1, 1), pictures)
    images = [to_image(picture) for picture in pictures]
    return _psnr(error), len(codes.encode(images, _PIXELS).unique())


def _psnr(mean_squared_error: torch.Tensor) -> float:
    return float(10 * torch.log10(4 / mean_squared_error))  # pixels span [-1, 1], so peak^2 = 4


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_codes", description=__doc__)
    parser.add_argument("--output", type=Path, default=SHAPES_FOLDER)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args(argv)
    model = new_model()
    train(model, arguments.steps, arguments.batch_size)
    ratio, used = evaluate(model)
    model.half().save_pretrained(arguments.output, safe_serialization=True)
    print(f"{ratio:.1f} dB on held-out pictures, {used} of 128 codes used: {arguments.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
