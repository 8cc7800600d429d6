"""Cohere 1 and 2, ERNIE 4.5: neighbours turn together.

Counted are CohereForCausalLM, Cohere2ForCausalLM and Ernie4_5ForCausalLM.

Heads are turned in 32 bits, each pair of neighbouring channels by one angle.

Source: transformers (models/cohere/modeling_cohere.py, models/cohere2/modeling_cohere2.py,
models/ernie4_5/modeling_ernie4_5.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention, Held, Mixer, Shared
from calculator.layers.layer import Unary
from calculator.layers.rotary import half_turned
from calculator.layers.stack import Block
from calculator.models.decoder import HIDDEN, Decoder
from calculator.models.model import ALWAYS, LLAMAS


@dataclass(eq=False)
class PlainNorm(RMSNorm):
    """w * (x - mean) / sqrt(variance + eps) in plain operations, all in 32 bits."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        wide = op.cast(x, FLOAT32)
        mean = op.mean_of_rows(wide)
        squares = op.power(op.subtract(wide, mean))
        variance = op.mean_of_rows(squares)
        del squares  # dies here
        distance = op.subtract(wide, mean)
        root = op.rsqrt(op.shift(variance))
        normed = op.multiply(distance, root)
        del distance, root, wide
        normed = op.multiply(op.cast(x.tape.weight(self.weight), FLOAT32), normed)
        out = op.cast(normed, x.dtype)
        del mean, variance  # held until here
        return out


@dataclass(eq=False)
class PairedAttention(GroupedAttention):
    """Neighbours are turned together, in 32 bits."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places."""
        wide_q, wide_k = op.cast(q, FLOAT32), op.cast(k, FLOAT32)
        turned_q, turned_k = super().turned(wide_q, wide_k, held)
        return op.cast(turned_q, q.dtype), op.cast(turned_k, k.dtype)


@dataclass(eq=False)
class WindowedAttention(PairedAttention):
    """The same, but only where there is a window."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places; as they are where the whole sequence is seen."""
        return super().turned(q, k, held) if self.local else (q, k)


@dataclass(eq=False)
class CohereBlock(Block):
    """Attention and a gated feed-forward layer side by side after one norm."""

    attention: Mixer
    feed_forward: Unary

    def __post_init__(self) -> None:
        self.norm = PlainNorm(HIDDEN)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        normed = self.norm(x)
        attended, _probabilities = self.attention(normed, held)
        forwarded = self.feed_forward(normed)
        return op.add(op.add(x, attended), forwarded)

    def handed(self, shared: Shared) -> tuple[Held]:
        """The tables and the mask of its own attention alone."""
        return (shared.of(self.attention.local),)


@dataclass(eq=False)
class Cohere(Decoder):
    """Attention and feed-forward layer side by side; scaled logits."""

    whole_tokens = LLAMAS
    norm_class = PlainNorm
    attention_class: ClassVar[type[GroupedAttention]] = PairedAttention
    biases = ("attention_bias", "attention_bias", "")
    scales_logits = True
    side_by_side = ALWAYS

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return CohereBlock(cls.attention(architecture, kind), cls.feed_forward(architecture))


@dataclass(eq=False)
class Cohere2(Cohere):
    """Three layers with a window for each without."""

    both_masks = True
    turn = 4
    attention_class = WindowedAttention


@dataclass(eq=False)
class NeighbourAttention(GroupedAttention):
    """Attention for which each layer makes tables of its own, every angle twice in turn."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, in their own format again."""
        tables = [table.tape.like(table) for table in held.tables]
        wide_q, wide_k = turned(q, *tables), turned(k, *tables)
        del tables
        return op.cast(wide_q, q.dtype), op.cast(wide_k, k.dtype)

    def kept(self, held: Held) -> Held:
        """The model's tables are not: heads were turned by the layer's own."""
        return Held(held.positions, (), held.mask)  # type: ignore[arg-type]


def turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """x cos + (x turned by a quarter, in its own format first) sin."""
    near = op.multiply(op.cast(x, FLOAT32), cosines)
    around = op.cast(half_turned(x), FLOAT32)
    far = op.multiply(around, sines)
    del around
    return op.add(near, far)


@dataclass(eq=False)
class Ernie45(Decoder):
    """All projections with biases, or none."""

    has_dropout = False
    attention_class = NeighbourAttention
    wide_tables = True
    biases = ("use_bias", "use_bias", "use_bias")
