"""OLMo 2 and 3 (Olmo2ForCausalLM, Olmo3ForCausalLM): norms after attention and feed-forward.

Source: transformers (models/olmo2/modeling_olmo2.py, models/olmo3/modeling_olmo3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.sizes import Size
from calculator.configuration import MOST_LAYERS, Configuration
from calculator.layers.basic import RMSNorm, normalised
from calculator.layers.decoder import DecoderBlock
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.heads import Heads, last_token
from calculator.layers.layer import Unary
from calculator.layers.pairs import with_pairs
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import HEAD, HIDDEN, SLIDING, Decoder, heads_of
from calculator.task import Task


@dataclass(eq=False)
class Olmo2Norm(RMSNorm):
    """RMSNorm that multiplies by its weight before it goes back to the input's format."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed, variance = normalised(x)
        out = op.cast(op.multiply(x.tape.weight(self.weight), normed), x.dtype)
        del normed, variance  # held until here
        return out


@dataclass(eq=False)
class Olmo2Attention(GroupedAttention):
    """All heads of queries, and all of keys, are normed together; they turn in 32 bits."""

    def heads_of(
        self, x: Tensor, heads: Size, norm: Unary | None = None, copied: bool = True
    ) -> Tensor:
        """(batch, length, heads * width) -> (batch, heads, length, width), normed before."""
        return super().heads_of(x if norm is None else norm(x), heads, copied=copied)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, in their own format again."""
        wide_q, wide_k = super().turned(q, k, held)
        return op.cast(wide_q, q.dtype), op.cast(wide_k, k.dtype)


@dataclass(eq=False)
class Olmo2(Decoder):
    """Norms of queries and keys, and of what each branch adds."""

    title = "OLMo 2"
    counted = "Olmo2ForCausalLM"
    whole_layers = "all heads of a token are normed together, so transformers gathers them"
    heads: ClassVar[Heads] = with_pairs({Task.SEQUENCE: last_token})

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> Olmo2Attention:
        """Norms as wide as all heads together."""
        heads, biased = heads_of(architecture), architecture.has("attention_bias")
        queries, keys = (Olmo2Norm(each * heads.width) for each in (heads.queries, heads.keys))
        local = kind == SLIDING
        return Olmo2Attention(HIDDEN, heads, biased, biased, local, queries, keys)

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> DecoderBlock:
        """Norms after both branches."""
        attention, feed = cls.attention(architecture, kind), cls.feed_forward(architecture)
        return DecoderBlock(attention, feed, None, (Olmo2Norm(HIDDEN), Olmo2Norm(HIDDEN)))

    @classmethod
    def final_norm(cls) -> Olmo2Norm:
        """The same kind of norm after the last layer."""
        return Olmo2Norm(HIDDEN)

    def tables(self, t: Recorder, positions: Tensor, dtype: DType) -> Mapping[bool, Tables]:
        """Tables in 32 bits always."""
        return super().tables(t, positions, FLOAT32)


@dataclass(eq=False)
class Olmo3(Olmo2):
    """Three layers with a window for each without, and rotary tables for both kinds."""

    title = "OLMo 3"
    counted = "Olmo3ForCausalLM"
    heads: ClassVar[Heads] = with_pairs({Task.SEQUENCE: last_token})
    both_masks = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, whether projections have biases, and the kinds of all layers.

        A stage of a pipeline with layers of one kind has the tables of both.
        """
        layers = c.size("num_hidden_layers", cls._default("num_hidden_layers"), most=MOST_LAYERS)
        kinds = len(set(cls.pattern(c, layers)))
        return {**super().more(c), "window": cls.window_of(c), "kinds": kinds}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window, and every fourth without."""
        return cls.windows_in_turn(c, layers, 4)

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables for each kind of layer."""
        return Rotary(HEAD, architecture.numbers["kinds"])

    def tables(self, t: Recorder, positions: Tensor, dtype: DType) -> Mapping[bool, Tables]:
        """A pair for each kind of layer, in 32 bits always."""
        return self.tables_of_kinds(t, positions, FLOAT32)
