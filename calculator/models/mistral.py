"""Mistral (transformers' MistralForCausalLM).

Source: transformers (models/mistral/modeling_mistral.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.heads import Heads
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import FULL, SLIDING, Decoder


@dataclass(eq=False)
class Mistral(Decoder):
    """All layers have a window, or none."""

    title = "Mistral"
    counted = "MistralForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    lora_targets = ("q_proj", "v_proj")
    default_window: ClassVar[int] = 4096

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window; 0 for none, as null says."""
        default = 0 if c.has_null("sliding_window") else cls.default_window
        return {"window": c.size("sliding_window", default, most=LONGEST_SEQUENCE)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """One kind, with a window or without."""
        del layers
        return (SLIDING if cls.more(c)["window"] else FULL,)
