"""Memory over one step as pictures: the calculator's own curve, drawn when the site is built."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from calculator.page.curve import draw_curve
from calculator.units import format_bytes
from templates.pages.numbers.choices import Choice
from templates.pieces.counted import Counted, count
from templates.pieces.scripts import ask_script

OUTLINES: Final = Path(__file__).with_name("outlines.mjs")
POINTS: Final = 240
FEW_POINTS: Final = 140


@dataclass(frozen=True, slots=True)
class Change:
    """A choice that changes the curve's shape."""

    label: str
    words: str
    options: dict[str, str]


PLAIN: Final = Change("Nothing saved", "", {})
CHECKPOINTING: Final = Change(
    "Gradient checkpointing",
    "The forward pass keeps only each layer's input. The backward pass computes one layer "
    "again at a time: the teeth of the curve. Weights and states are as large as before.",
    {"checkpointing": "full"},
)
EIGHT_BIT: Final = Change(
    "8-bit optimizer states",
    "The states, which are there all the time, shrink to about a quarter, and everything on "
    "top of them moves down.",
    {"optimizer_bits": "8"},
)
LORA: Final = Change(
    "LoRA",
    "The weights are frozen: no gradients and no states, except for the small adapters. "
    "Activations remain, because the gradients of the adapters pass through every layer.",
    {"lora": "16", "lora_targets": "all-linear"},
)
# peft adapts transformers' classes, and the run's model is our own
REVERSIBLE: Final = Change(
    "Reversible layers",
    "Each layer's input is computed again from its output, so hardly any activations are kept. "
    "Weights and states are as large as before.",
    {"reversible": "true"},
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A curve with its outlines.

    Attributes:
        drawn: what the calculator says of the curve.
        outlines: of each part, as SVG's path data.
    """

    change: Change
    counted: Counted
    drawn: dict[str, Any]
    outlines: list[str]

    @property
    def peak(self) -> str:
        """The highest point in words."""
        return format_bytes(self.counted.peak)

    @property
    def seen(self) -> str:
        """The curve for anyone who can't see it."""
        return " ".join(self.drawn["summary"])


def pictures(choice: Choice) -> list[Picture]:
    """The plain step, then each change, all on the scale of the highest."""
    changes = (PLAIN, CHECKPOINTING, EIGHT_BIT, REVERSIBLE if choice.is_of_the_run else LORA)
    plans = [choice.state | change.options for change in changes]
    counted = [count(**plan) for plan in plans]
    reach = max(one.peak for one in counted)
    drawn = [
        draw_curve(plan, reach, POINTS if change is PLAIN else FEW_POINTS)
        for change, plan in zip(changes, plans, strict=True)
    ]
    outlines = _outlines([one["points"] for one in drawn])
    return [
        Picture(change, one, curve, parts)
        for change, one, curve, parts in zip(changes, counted, drawn, outlines, strict=True)
    ]


def _outlines(curves: list[list[dict[str, Any]]]) -> list[list[str]]:
    """The outlines of each curve's parts, as the calculator's script draws them."""
    with TemporaryDirectory() as folder:
        asked = Path(folder) / "curves.json"
        asked.write_text(json.dumps(curves), "utf-8")
        found: list[list[str]] = ask_script(OUTLINES, asked)["outlines"]
    return found
