"""Train the small CLIP that scores pictures of shapes: `python -m benchmarks.train_scorer`.

A `CLIPModel` of transformers learns to tell which of a batch's captions belongs to which of its
pictures (Radford et al. 2021, arXiv:2103.00020, section 2.3). Half of the pictures went through
the VQ-GAN, as those that the transformer draws have.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.nn import functional
from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, PreTrainedTokenizerFast

from training.pictures.codes import CodeModel
from training.pictures.rerank import SHAPES_FOLDER, Scorer
from training.shapes.samples import WORDS, Sample, draw_sample

PIXELS = 32
HELD_OUT_SEED = 1
_WARM_UP = 50  # steps
_TEXT_LENGTH = 12  # ten words at most, and the end
_PAD, _END, _UNKNOWN = "<pad>", "<end>", "<unknown>"


def new_scorer() -> Scorer:
    """A scorer with random weights: 0.4 million parameters."""
    tokenizer = _make_tokenizer()
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": _TEXT_LENGTH,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    vision = {
        "hidden_size": 80,
        "intermediate_size": 320,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": PIXELS,
        "patch_size": 8,
    }
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=64)
    images = CLIPImageProcessorPil(
        size={"shortest_edge": PIXELS},
        crop_size={"height": PIXELS, "width": PIXELS},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    return Scorer(CLIPModel(config), tokenizer, images)


def make_samples(count: int, codes: CodeModel, seed: int, varied: bool = False) -> list[Sample]:
    """Captioned pictures, every second of which went through the VQ-GAN."""
    samples = [draw_sample(index, PIXELS, seed, varied) for index in range(count)]
    for start in range(0, count, 512):
        part = samples[start : start + 512 : 2]
        decoded = codes.decode(codes.encode([sample.image for sample in part], PIXELS))
        for place, (image, sample) in enumerate(zip(decoded, part, strict=True)):
            samples[start + 2 * place] = Sample(image, sample.caption)
    return samples


def train(
    scorer: Scorer, samples: Sequence[Sample], steps: int, batch_size: int, learning_rate: float
) -> None:
    """Contrast the captions and pictures of each batch with each other."""
    pixels = scorer.read_images([sample.image for sample in samples])
    text = scorer.read_captions([sample.caption for sample in samples])
    names = sorted({sample.caption for sample in samples})
    caption_ids = torch.tensor([names.index(sample.caption) for sample in samples])
    parameters = list(scorer.model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / _WARM_UP, 1 - step / steps)
    )
    scorer.model.train()
    generator = torch.Generator().manual_seed(0)
    began = time.monotonic()
    for step in range(steps):
        chosen = torch.randint(len(samples), (batch_size,), generator=generator)
        logits = scorer.model(
            pixel_values=pixels[chosen], **{key: value[chosen] for key, value in text.items()}
        ).logits_per_image
        same = caption_ids[chosen][:, None] == caption_ids[chosen]
        target = same.float() / same.sum(dim=1, keepdim=True)  # equal captions are both right
        loss = (
            functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)
        ) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            seconds = time.monotonic() - began
            print(f"step {step + 1}: loss {loss.item():.3f}, {seconds:.0f} s", flush=True)
    scorer.model.eval()


def measure(scorer: Scorer, count: int, codes: CodeModel) -> float:
    """Share of held-out pictures whose own caption scores best among all their captions."""
    samples = make_samples(count, codes, HELD_OUT_SEED)
    captions = sorted({sample.caption for sample in samples})
    scores = scorer.compare([sample.image for sample in samples], captions)
    best = [captions[place] for place in scores.argmax(dim=1).tolist()]
    right = [a == sample.caption for a, sample in zip(best, samples, strict=True)]
    return float(sum(right) / len(right))


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_scorer", description=__doc__)
    parser.add_argument("--output", type=Path, default=SHAPES_FOLDER)
    parser.add_argument("--start", type=Path, help="go on from a scorer in this folder")
    parser.add_argument("--samples", type=int, default=12_288, help="pictures to learn from")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    arguments = parser.parse_args(argv)
    torch.manual_seed(0)
    scorer = Scorer.load(arguments.start) if arguments.start else new_scorer()
    codes = CodeModel.load("shapes")
    half = arguments.samples // 2
    samples = make_samples(half, codes, seed=0) + make_samples(half, codes, seed=2, varied=True)
    train(scorer, samples, arguments.steps, arguments.batch_size, arguments.learning_rate)
    share = measure(scorer, 1024, codes)
    scorer.save(arguments.output)
    print(f"{100 * share:.1f} % of 1,024 held-out pictures find their caption: {arguments.output}")
    return 0


def _make_tokenizer() -> PreTrainedTokenizerFast:
    names = [_PAD, _END, _UNKNOWN, *WORDS]
    tokenizer = Tokenizer(
        models.WordLevel({str(word): place for place, word in enumerate(names)}, _UNKNOWN)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    end = names.index(_END)
    tokenizer.post_processor = processors.TemplateProcessing(f"$A {_END}", None, [(_END, end)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_END,
        unk_token=_UNKNOWN,
        model_max_length=_TEXT_LENGTH,
    )


if __name__ == "__main__":
    raise SystemExit(main())
