"""Granite 3 with experts (transformers' GraniteMoeForCausalLM).

Source: transformers (models/granitemoe/modeling_granitemoe.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd import selection as pick
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.layers.experts import Routed, Router
from calculator.models.decoder import HIDDEN
from calculator.models.llama import Granite
from calculator.models.sparse import CHOICE, SparseDecoder


class ChosenRouter(Router):
    """Shares from the largest logits alone, in 32 bits and then as the tokens are."""

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        logits = op.cast(op.linear(x, self.adapted(x)), FLOAT32)
        largest, chosen = pick.largest(logits, self.choice.chosen)
        shares = op.cast(op.softmax(largest), x.dtype)
        del largest  # held until here
        return logits, shares, chosen


@dataclass(eq=False)
class GraniteMoe(SparseDecoder, Granite):
    """Granite with experts in every layer, each as wide as a dense layer would be."""

    whole_heads = True
    fused_experts = ()  # peft knows no names of its experts

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Experts of a token's largest logits."""
        return ChosenRouter(HIDDEN, CHOICE)
