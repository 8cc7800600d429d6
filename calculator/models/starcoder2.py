"""StarCoder 2 (transformers' Starcoder2ForCausalLM).

Source: transformers (models/starcoder2/modeling_starcoder2.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.attention import Attended
from calculator.layers.basic import LayerNorm
from calculator.layers.feed_forward import FeedForward
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.models.decoder import FEED, FULL, HIDDEN, SLIDING, Decoder
from calculator.models.keys import own_numbers


@dataclass(eq=False)
class DroppedAttention(GroupedAttention):
    """Attention with dropout after its output's projection."""

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        out, probabilities = super().__call__(x, held)
        return op.dropout(out), probabilities


@dataclass(eq=False)
class Starcoder2(Decoder):
    """Norms with biases, a plain feed-forward layer, dropout, perhaps a window in all layers."""

    norm_class = LayerNorm
    attention_class = DroppedAttention
    biases = ("use_bias", "use_bias", "use_bias")

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; one dropout stands for all."""
        dropout = c.dropout("residual_dropout", 0.0, "embedding_dropout", "attention_dropout")
        return replace(super().read(c, name), dropout=dropout)

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window of all layers, and whether products have biases."""
        window = c.value("sliding_window") and c.size("sliding_window", 1, most=LONGEST_SEQUENCE)
        return {"window": window or 0, **own_numbers(cls, c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """One kind for all layers."""
        return (SLIDING if cls.more(c)["window"] else FULL,)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Two products with biases, or without."""
        biased = architecture.has("use_bias")
        return FeedForward(HIDDEN, FEED, ("c_fc", "c_proj"), op.gelu, biased)

    def entered(self, embedded: Tensor) -> Tensor:
        """The embeddings with dropout."""
        return op.dropout(embedded)
