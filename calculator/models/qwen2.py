"""Qwen 2 and 2.5 (transformers' Qwen2ForCausalLM).

Source: transformers (models/qwen2/modeling_qwen2.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import FULL, HIDDEN, SLIDING, Decoder, heads_of


@dataclass(eq=False)
class Qwen2(Decoder):
    """Biases of queries, keys and values; the upper layers may have a window."""

    title = "Qwen 2"
    counted = "Qwen2ForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    lora_targets = ("q_proj", "v_proj")
    whole_mask = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, which is used where the configuration says so."""
        window = c.size("sliding_window", 4096, most=LONGEST_SEQUENCE)
        used = c.flag("use_sliding_window", False) and not c.has_null("sliding_window")
        c.only("use_mrope", False)
        return {"window": window * used}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Lower layers without a window, upper ones with it."""
        below = c.count("max_window_layers", 28)
        windowed = cls.more(c)["window"] > 0 and below < layers
        upper = (FULL,) * below + (SLIDING,) * (layers - below) if windowed else (FULL,)
        return cls.layer_types(c, layers, upper)

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Biases in all but the output's projection."""
        return GroupedAttention(HIDDEN, heads_of(architecture), True, local=kind == SLIDING)
