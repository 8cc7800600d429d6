"""Llama (transformers' LlamaForCausalLM).

Source: transformers (models/llama/modeling_llama.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.layers.feed_forward import GatedFeedForward
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads, each_token, last_token, span
from calculator.models.decoder import FEED, HIDDEN, Decoder, heads_of
from calculator.task import Task


@dataclass(eq=False)
class Llama(Decoder):
    """Projections may have biases."""

    title = "Llama"
    counted = "LlamaForCausalLM"
    heads: ClassVar[Heads] = {
        Task.SEQUENCE: last_token,
        Task.TOKENS: each_token,
        Task.QUESTIONS: span,
    }
    lora_targets = ("q_proj", "v_proj")

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """Sets which projections have biases."""
        c.ignore("pretraining_tp")
        return {key: c.flag(key, False) for key in ("attention_bias", "mlp_bias")}

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """All four projections with biases, or none."""
        biased = architecture.has("attention_bias")
        return GroupedAttention(HIDDEN, heads_of(architecture), biased, biased)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> GatedFeedForward:
        """All three projections with biases, or none."""
        return GatedFeedForward(HIDDEN, FEED, biased=architecture.has("mlp_bias"))
