"""Memory that each technique alone saves."""

from dataclasses import dataclass
from typing import Final

from calculator.errors import InputError
from calculator.units import format_bytes
from templates.pages.numbers.choices import Choice
from templates.pieces.counted import count

MICRO_BATCH: Final = 4


@dataclass(frozen=True, slots=True)
class Saving:
    """The peak with one technique, as a part of the peak without."""

    query: str
    peak: str
    saved: str
    part: float


@dataclass(frozen=True, slots=True)
class Technique:
    """A way to save memory, and its effect; None where it does not apply to the model."""

    label: str
    words: str
    saving: Saving | None


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


def plain_state(choice: Choice) -> dict[str, str]:
    """The state of the calculator without techniques."""
    return choice.state | {"batch_size": str(MICRO_BATCH)}


def techniques(choice: Choice) -> list[Technique]:
    """Each technique alone."""
    plain = plain_state(choice)
    return [Technique(label, words, _saving(plain, added)) for label, words, added in TECHNIQUES]


def _saving(plain: dict[str, str], added: dict[str, str]) -> Saving | None:
    without = count(**plain).peak
    try:
        found = count(**(plain | added))
    except InputError:
        return None
    return Saving(
        found.query,
        format_bytes(found.peak),
        format_bytes(without - found.peak),
        100 * found.peak / without,
    )
