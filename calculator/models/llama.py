"""Llama (transformers' LlamaForCausalLM), and types that differ by biases, dropout or activation.

Source: transformers (models/llama/modeling_llama.py, models/arcee/modeling_arcee.py,
models/seed_oss/modeling_seed_oss.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
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
    activation: ClassVar[tuple[str, ...]] = ("hidden_act", "relu2")
    defaults: ClassVar[dict[str, int]] = {
        "hidden_size": 2560,
        "intermediate_size": 18_432,
        "max_position_embeddings": 4096,
    }

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
    defaults: ClassVar[dict[str, int]] = {
        "vocab_size": 155_136,
        "intermediate_size": 27_648,
        "num_hidden_layers": 64,
        "num_attention_heads": 80,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 524_288,
    }

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """Sets which projections have biases."""
        biases = {"attention_bias": True, "attention_out_bias": False}
        return {**super().more(c), **{key: c.flag(key, found) for key, found in biases.items()}}

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Two kinds of biases."""
        biased, output_biased = map(architecture.has, ("attention_bias", "attention_out_bias"))
        return DroppedAttention(HIDDEN, heads_of(architecture), biased, output_biased)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Three projections without biases, and dropout."""
        return DroppedFeedForward(HIDDEN, FEED)
