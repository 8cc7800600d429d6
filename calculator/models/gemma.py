"""Gemma (transformers' GemmaForCausalLM).

Source: transformers (models/gemma/modeling_gemma.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.layers.basic import RMSNorm, inverse_root
from calculator.layers.decoder import DecoderBlock
from calculator.layers.feed_forward import Activation, GatedFeedForward
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads
from calculator.layers.layer import Buffer
from calculator.layers.pairs import CLASSIFIERS
from calculator.layers.stack import Block
from calculator.models.decoder import FEED, HIDDEN, SLIDING, Decoder, heads_of
from calculator.models.model import LLAMAS


@dataclass(eq=False)
class GemmaNorm(RMSNorm):
    """x / sqrt(mean(x^2) + eps) times 1 + w, all in 32 bits."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed = self.normed(op.cast(x, FLOAT32))
        factor = op.shift(op.cast(x.tape.weight(self.weight), FLOAT32))
        normed = op.multiply(normed, factor)
        del factor  # dies here
        return op.cast(normed, x.dtype)

    def normed(self, wide: Tensor) -> Tensor:
        """Without the weight."""
        root = inverse_root(wide)[0]
        return op.multiply(wide, root)


@dataclass(eq=False)
class Gemma(Decoder):
    """Scaled embeddings, norms around 1 + w, GELU in the feed-forward layer."""

    title = "Gemma"
    counted = "GemmaForCausalLM"
    whole_tokens = LLAMAS
    heads: ClassVar[Heads] = CLASSIFIERS
    lora_targets = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scale = Buffer((), FLOAT32)

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Grouped heads."""
        biased, local = architecture.has("attention_bias"), kind == SLIDING
        return GroupedAttention(HIDDEN, heads_of(architecture), biased, biased, local)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> GatedFeedForward:
        """Gated by GELU."""
        return GatedFeedForward(HIDDEN, FEED, Activation.GELU_TANH)

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """Norms before both branches."""
        attention, feed = cls.attention(architecture, kind), cls.feed_forward(architecture)
        return DecoderBlock(attention, feed, (GemmaNorm(HIDDEN), GemmaNorm(HIDDEN)))

    @classmethod
    def final_norm(cls) -> GemmaNorm:
        """The same kind of norm after the last layer."""
        return GemmaNorm(HIDDEN)

    def embedded(self, ids: Tensor) -> Tensor:
        """Embeddings times the root of the width."""
        return self.tokens(ids, scaled=True)
