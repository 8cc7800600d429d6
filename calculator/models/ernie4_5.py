"""ERNIE 4.5 (transformers' Ernie4_5ForCausalLM): neighbours are turned together, in 32 bits.

Source: transformers (models/ernie4_5/modeling_ernie4_5.py).
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.rotary import half_turned
from calculator.models.decoder import Decoder


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
