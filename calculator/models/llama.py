"""Llama (transformers' LlamaForCausalLM), and types that differ by biases, dropout or activation.

Source: transformers (models/llama/modeling_llama.py, models/arcee/modeling_arcee.py,
models/seed_oss/modeling_seed_oss.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.layers.basic import Linear
from calculator.layers.feed_forward import GatedFeedForward
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads
from calculator.layers.layer import Unary
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import FEED, HIDDEN, Decoder, heads_of


@dataclass(eq=False)
class Llama(Decoder):
    """Projections may have biases."""

    title = "Llama"
    counted = "LlamaForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    lora_targets = ("q_proj", "v_proj")

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """All four projections with biases, or none."""
        biased = architecture.has("attention_bias")
        return GroupedAttention(HIDDEN, heads_of(architecture), biased, biased)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """All its projections with biases, or none."""
        return GatedFeedForward(HIDDEN, FEED, biased=architecture.has("mlp_bias"))


@dataclass(eq=False)
class SquaredFeedForward(Unary):
    """W_down relu(W_up x)^2."""

    biased: bool

    def __post_init__(self) -> None:
        self.up = Linear(HIDDEN, FEED, self.biased, name="up_proj")
        self.down = Linear(FEED, HIDDEN, self.biased, name="down_proj")

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        up = self.up(x)
        positive = op.relu(up)
        squared = op.power(positive)
        del up, positive  # held by the activation's call
        return self.down(squared)


@dataclass(eq=False)
class Arcee(Llama):
    """A feed-forward layer without a gate."""

    title = "Arcee"
    counted = "ArceeForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Two projections with biases, or without."""
        return SquaredFeedForward(architecture.has("mlp_bias"))


class DroppedAttention(GroupedAttention):
    """Attention with dropout of its output, while queries, keys and values are held."""

    def finished(self, x: Tensor) -> Tensor:
        """The output's projection with dropout."""
        return op.dropout(super().finished(x))


class DroppedFeedForward(GatedFeedForward):
    """A gated layer with dropout of its output."""

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        return op.dropout(super().__call__(x))


@dataclass(eq=False)
class SeedOss(Llama):
    """Biases of queries, keys and values apart from the output's; dropout after each branch."""

    title = "Seed-OSS"
    counted = "SeedOssForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    dropouts: ClassVar[tuple[str, ...]] = ("attention_dropout", "residual_dropout")
    default_dropout: ClassVar[float] = 0.1

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Two kinds of biases."""
        biased, output_biased = map(architecture.has, ("attention_bias", "attention_out_bias"))
        return DroppedAttention(HIDDEN, heads_of(architecture), biased, output_biased)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Three projections without biases, and dropout."""
        return DroppedFeedForward(HIDDEN, FEED)
