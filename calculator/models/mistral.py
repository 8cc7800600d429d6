"""Types whose layers all have a window, or none: Mistral, Mixtral, Phi 3 and 4, StarCoder 2.

Counted are MistralForCausalLM, Ministral3ForCausalLM, MixtralForCausalLM, Phi3ForCausalLM and
Starcoder2ForCausalLM.

Source: transformers (models/mistral/modeling_mistral.py, models/ministral3/modeling_ministral3.py,
models/mixtral/modeling_mixtral.py, models/phi3/modeling_phi3.py,
models/starcoder2/modeling_starcoder2.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, Size, together
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.attention import Attended
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.experts import Router, SoftmaxRouter
from calculator.layers.feed_forward import FeedForward
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.layers.rotary import Rotary
from calculator.models.decoder import FEED, FULL, HEAD, HIDDEN, SLIDING, Decoder, rope_of, turned_of
from calculator.models.keys import own_numbers
from calculator.models.sparse import CHOICE, SparseDecoder


@dataclass(eq=False)
class Mistral(Decoder):
    """All layers have a window, or none."""

    default_window: ClassVar[int] = 4096

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window; 0 for none, as null says."""
        default = 0 if c.has_null("sliding_window") else cls.default_window
        return {"window": c.size("sliding_window", default, most=LONGEST_SEQUENCE)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """One kind, with a window or without."""
        return (SLIDING if cls.more(c)["window"] else FULL,)


@dataclass(eq=False)
class ScaledAttention(GroupedAttention):
    """Queries times 1 + beta log(1 + floor(place / trained length))."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places; each layer makes the factors again."""
        q, k = super().turned(q, k, held)
        factors = q.tape.empty((ONE, ONE, SEQUENCE, ONE), FLOAT32)
        return op.multiply(q, op.cast(factors, q.dtype)), k


@dataclass(eq=False)
class Ministral3(Mistral):
    """Mistral with scaled queries, and without a window unless one is given."""

    attention_class = ScaledAttention
    is_inner = True
    default_window = 0


@dataclass(eq=False)
class Mixtral(Mistral, SparseDecoder):
    """Experts in every layer, each as wide as a dense layer of the model would be."""

    fused_experts = ("gate", "w1", "w3", "w2")
    default_window = 0

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window and the experts; noise on the router's inputs is not counted."""
        return {**super().more(c), **cls.experts(c)}

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Shares that add up to one, in 32 bits."""
        return SoftmaxRouter(HIDDEN, CHOICE)


LONG = ("longrope", "su", "yarn")  # the class takes all three for the first


@dataclass(eq=False)
class JoinedAttention(GroupedAttention):
    """Queries, keys and values are slices of one product; turned heads are joined again."""

    side_by_side = True

    def __post_init__(self) -> None:
        super().__post_init__()
        queries, keys = self.heads.queries * self.heads.width, self.heads.keys * self.heads.width
        del self.query, self.key, self.value
        self.joined = Linear(
            self.hidden, together(queries, keys, keys), biased=False, name="qkv_proj"
        )

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of each slice."""
        heads, width = self.heads, self.heads.width
        joined = self.joined(x)

        def part(each: Size) -> Tensor:
            return op.part(joined, *joined.shape[:-1], each * width)

        q, k, v = part(heads.queries), part(heads.keys), part(heads.keys)
        copied = self.copies(x.tape.mode, held.mask)
        v = self.heads_of(v, heads.keys, copied=copied)
        return self.heads_of(q, heads.queries), self.heads_of(k, heads.keys), v


@dataclass(eq=False)
class JoinedFeedForward(Unary):
    """W_down (up * silu(gate)), where one product makes gate and up."""

    def __post_init__(self) -> None:
        self.gate_up = Linear(HIDDEN, 2 * FEED, biased=False, name="gate_up_proj")
        self.down = Linear(FEED, HIDDEN, biased=False, name="down_proj")

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        gate, up = op.split(self.gate_up(x), FEED, FEED)
        up = op.multiply(up, op.silu(gate))
        return self.down(up)


@dataclass(eq=False)
class Phi3(Mistral):
    """Joined projections, and a part of each head that may stay as it is."""

    whole_layers = "products are joined in one weight, whose outputs transformers gathers"
    attention_class = JoinedAttention
    default_window = 0
    dropouts = ("attention_dropout", "resid_pdrop")
    ropes = ("default", *LONG)
    turned_share = 1.0
    drops_branches = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, and whether there are frequencies for long sequences."""
        rope = c.value("rope_parameters") or c.value("rope_scaling") or {}
        return {**super().more(c), "long": int(rope_of(rope) in LONG)}

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables of the channels that are turned."""
        return Rotary(turned_of(architecture) or HEAD, long=architecture.has("long"))

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """One product for gate and up."""
        return JoinedFeedForward()


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
