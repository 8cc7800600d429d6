"""Llama (transformers' LlamaForCausalLM), and types that differ from it in few places.

Source: transformers (models/llama/modeling_llama.py, models/arcee/modeling_arcee.py,
models/granite/modeling_granite.py, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py,
models/olmo/modeling_olmo.py, models/seed_oss/modeling_seed_oss.py,
models/smollm3/modeling_smollm3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended
from calculator.layers.basic import Linear, RMSNorm, WeightlessNorm
from calculator.layers.feed_forward import GatedFeedForward
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.models.decoder import FEED, FULL, HIDDEN, Decoder, in_turn
from calculator.models.keys import own_numbers

NO_PLACES = "no_rope"


@dataclass(eq=False)
class Llama(Decoder):
    """Projections may have biases."""

    biases = ("attention_bias", "attention_bias", "mlp_bias")


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

    attention_class = DroppedAttention
    biases = ("attention_bias", "attention_out_bias", "")
    dropouts = ("attention_dropout", "residual_dropout")
    default_dropout = 0.1

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Three projections without biases, and dropout."""
        return DroppedFeedForward(HIDDEN, FEED)


@dataclass(eq=False)
class Granite(Llama):
    """Embeddings, what layers add, and logits are multiplied by numbers, by 1 too."""

    has_multipliers = True
    scales_logits = True

    def embedded(self, ids: Tensor) -> Tensor:
        """Scaled embeddings."""
        return op.scale(super().embedded(ids))

    def received(self, hidden: Tensor) -> Tensor:
        """The same, multiplied by 1."""
        return op.scale(hidden)


@dataclass(eq=False)
class UnturnedAttention(GroupedAttention):
    """Queries and keys as they are projected."""

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads whose gradients lie as they do, where the kernel makes them so."""
        copied = self.copies(x.tape.mode, held.mask)
        q = self.heads_of(self.query(x), self.heads.queries, copied=copied)
        k = self.heads_of(self.key(x), self.heads.keys, copied=copied)
        return q, k, self.heads_of(self.value(x), self.heads.keys, copied=copied)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """The same."""
        return op.view(q, *q.shape), op.view(k, *k.shape)


@dataclass(eq=False)
class SmolLM3(Llama):
    """Llama in which every fourth layer has no rotary positions."""

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with places and without, as the configuration lists them."""
        c.only("use_sliding_window", False)
        c.ignore("sliding_window")
        cls.layer_types(c, layers, (FULL,))
        every = c.size("no_rope_layer_interval", 4)
        listed = c.value("no_rope_layers")
        if listed is None:
            return (FULL,) * (min(every, layers + 1) - 1) + (NO_PLACES,) * (every <= layers)
        known = isinstance(listed, list) and all(type(item) is int for item in listed)
        if not known or len(listed) != layers or not {0, 1} >= {*listed}:
            rule = f"must be a list with a 1 or 0 for each of {layers} layers"
            raise InputError("no_rope_layers", listed, rule)
        return in_turn([FULL if turned else NO_PLACES for turned in listed])

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """As Llama's, turned or not."""
        return UnturnedAttention if kind == NO_PLACES else GroupedAttention


@dataclass(eq=False)
class NormedAfterwards(GroupedAttention):
    """Queries and keys that are normed at their places."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.queries, self.keys = RMSNorm(self.heads.width), RMSNorm(self.heads.width)

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        q, k, v = self.projected(x, held)
        q, k = self.turned(q, k, held)
        q = self.queries(q)
        k = self.keys(k)
        return self.attended(q, k, v, held)


@dataclass(eq=False)
class HunyuanDense(Decoder):
    """Hunyuan's dense models: biases in attention or none, norms after the rotary positions."""

    attention_class = NormedAfterwards
    biases = ("attention_bias", "attention_bias", "")


@dataclass(eq=False)
class WideAttention(GroupedAttention):
    """Heads that are turned by tables in 32 bits, then narrowed."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, in their own format again."""
        wide_q, wide_k = super().turned(q, k, held)
        return op.cast(wide_q, q.dtype), op.cast(wide_k, k.dtype)


@dataclass(eq=False)
class ClippedAttention(WideAttention):
    """Projections that are clipped, each in its place, of which a copy is kept."""

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of queries, keys and values."""
        q, k, v = (op.clamp(layer(x), 2) for layer in (self.query, self.key, self.value))
        copied = self.copies(x.tape.mode, held.mask)
        q, k = self.heads_of(q, self.heads.queries), self.heads_of(k, self.heads.keys)
        return q, k, self.heads_of(v, self.heads.keys, copied=copied)


@dataclass(eq=False)
class Olmo(Decoder):
    """Norms without weights."""

    norm_class = WeightlessNorm
    wide_tables = True
    biases = ("attention_bias", "attention_bias", "")

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """Flags of projections with biases, and of clipped ones."""
        return {"clip_qkv": int(c.value("clip_qkv") is not None), **own_numbers(cls, c)}

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """With clipped projections, or without."""
        return ClippedAttention if architecture.has("clip_qkv") else WideAttention
