"""Granite (transformers' GraniteForCausalLM): Llama with multipliers.

Source: transformers (models/granite/modeling_granite.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.layers.basic import RMSNorm
from calculator.layers.decoder import DecoderBlock
from calculator.models.decoder import HIDDEN
from calculator.models.llama import Llama
from calculator.parts import Phase


@dataclass(eq=False)
class Granite(Llama):
    """Embeddings, what layers add, and logits are multiplied by numbers, by 1 too."""

    title = "Granite"
    counted = "GraniteForCausalLM"
    has_multipliers = True

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> DecoderBlock:
        """A layer whose branches are scaled."""
        attention, feed = cls.attention(architecture, kind), cls.feed_forward(architecture)
        return DecoderBlock(attention, feed, (RMSNorm(HIDDEN), RMSNorm(HIDDEN)), scaled=True)

    def embedded(self, ids: Tensor) -> Tensor:
        """Scaled embeddings."""
        return op.scale(super().embedded(ids))

    def received(self, hidden: Tensor) -> Tensor:
        """The same, multiplied by 1."""
        return op.scale(hidden)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scaled logits."""
        logits = super().logits(hidden)
        hidden.tape.ledger.begin(Phase.LOSS)
        return op.scale(logits)
