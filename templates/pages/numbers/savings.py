"""Memory that each technique alone saves, on two models."""

from dataclasses import dataclass
from typing import Final

from calculator.catalog import find_model
from calculator.units import format_bytes
from templates.pages.how_it_works.context import RUN, UNSHARED
from templates.pieces.counted import count

GPT2: Final = {"model": "gpt2-l"}
MICRO_BATCH: Final = 4


@dataclass(frozen=True, slots=True)
class Saving:
    """One technique on one model: the peak with it, as a part of the peak without."""

    query: str
    peak: str
    saved: str
    part: float


@dataclass(frozen=True, slots=True)
class Technique:
    """A way to save memory, and its effect on two models; None where it does not apply."""

    label: str
    words: str
    savings: tuple[Saving | None, ...]


TECHNIQUES: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "8-bit optimizer states",
        "The values in a block share one scale.",
        {"optimizer_bits": "8"},
    ),
    (
        "Offload",
        "States are kept and updated in CPU memory.",
        {"offload": "optimizer"},
    ),
    (
        "Gradient checkpointing",
        "Keep each layer's input and recompute the rest.",
        {"checkpointing": "full"},
    ),
    (
        "Sharing",
        "Four sets of weights, used in turn. A different model, trained this way from the start.",
        {"sharing_groups": "4"},
    ),
    (
        "Reversible layers",
        "Recompute each layer's input from its output. A different model, too.",
        {"reversible": "true"},
    ),
    (
        "LoRA",
        "Train adapters of rank 16 beside a pretrained model's linear layers, and nothing else.",
        {"lora": "16", "lora_targets": "all-linear"},
    ),
)


def plain_models() -> list[tuple[str, str, dict[str, str]]]:
    """Title, peak without techniques and choices of the two models."""
    found = []
    for choices in (RUN | {"sharing_groups": UNSHARED}, GPT2):
        with_batch = choices | {"batch_size": str(MICRO_BATCH)}
        peak = count(**with_batch).peak
        title = "The run's model" if choices is not GPT2 else find_model(GPT2["model"]).title
        found.append((title, format_bytes(peak), with_batch))
    return found


def techniques() -> list[Technique]:
    """Each technique alone, on both models."""
    models = [choices for _, _, choices in plain_models()]
    return [
        Technique(
            label,
            words,
            # peft adapts transformers' classes, and the run's model is our own
            tuple(
                None if "lora" in added and choices is not models[-1] else _saving(choices, added)
                for choices in models
            ),
        )
        for label, words, added in TECHNIQUES
    ]


def _saving(choices: dict[str, str], added: dict[str, str]) -> Saving:
    without, found = count(**choices).peak, count(**(choices | added))
    return Saving(
        found.query,
        format_bytes(found.peak),
        format_bytes(without - found.peak),
        100 * found.peak / without,
    )
