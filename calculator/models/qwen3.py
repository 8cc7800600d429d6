"""Qwen 3 (transformers' Qwen3ForCausalLM).

Source: transformers (models/qwen3/modeling_qwen3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import HEAD, HIDDEN, SLIDING, heads_of
from calculator.models.qwen2 import Qwen2


@dataclass(eq=False)
class Qwen3(Qwen2):
    """Norms of each head's queries and keys; biases in all projections or in none."""

    title = "Qwen 3"
    counted = "Qwen3ForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    lora_targets = ("q_proj", "v_proj")

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, and whether projections have biases."""
        return {**super().more(c), "attention_bias": c.flag("attention_bias", False)}

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Heads that are normed before they are turned."""
        biased = architecture.has("attention_bias")
        local = kind == SLIDING
        norms = RMSNorm(HEAD), RMSNorm(HEAD)
        return GroupedAttention(HIDDEN, heads_of(architecture), biased, biased, local, *norms)
