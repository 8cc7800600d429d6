"""Ministral 3 (transformers' Ministral3ForCausalLM), whose queries grow with their places.

Source: transformers (models/ministral3/modeling_ministral3.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.heads import Heads
from calculator.layers.pairs import EVERY_HEAD
from calculator.models.decoder import HIDDEN, SLIDING, heads_of
from calculator.models.mistral import Mistral


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

    title = "Ministral 3"
    counted = "Ministral3ForCausalLM"
    heads: ClassVar[Heads] = EVERY_HEAD
    is_inner = True
    default_window: ClassVar[int] = 0

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> ScaledAttention:
        """Scaled queries."""
        return ScaledAttention(HIDDEN, heads_of(architecture), local=kind == SLIDING)
