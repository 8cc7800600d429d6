"""Mistral, Ministral 3 and Mixtral (MistralForCausalLM, Ministral3ForCausalLM, MixtralForCausalLM).

Source: transformers (models/mistral/modeling_mistral.py, models/ministral3/modeling_ministral3.py,
models/mixtral/modeling_mixtral.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.experts import Experts, Mixture, SoftmaxRouter
from calculator.layers.grouped import GroupedAttention, Held
from calculator.models.decoder import FEED, FULL, HIDDEN, SLIDING, Decoder
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
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Shares that add up to one, in 32 bits."""
        return Mixture(SoftmaxRouter(HIDDEN, CHOICE), Experts(HIDDEN, FEED, CHOICE))
