"""Phi 1, 1.5 and 2 (transformers' PhiForCausalLM).

Source: transformers (models/phi/modeling_phi.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Parameter, Tensor
from calculator.configuration import Configuration
from calculator.layers.basic import LayerNorm
from calculator.layers.grouped import Held
from calculator.layers.stack import Block
from calculator.models.decoder import HIDDEN
from calculator.models.partial import ALIKE, FeedForward, PartialAttention, PartialDecoder


@dataclass(eq=False)
class PhiBlock(Block):
    """Attention and feed-forward layer side by side after one norm."""

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.attention = PartialAttention(HIDDEN, ALIKE, biased=True, output_biased=True)
        self.feed_forward = FeedForward(plain=True)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        normed = self.norm(x)
        attended, _probabilities = self.attention(normed, held)
        attended = op.dropout(attended)
        forwarded = op.dropout(self.feed_forward(normed))
        return op.add(op.add(attended, forwarded), x)


@dataclass(eq=False)
class Phi(PartialDecoder):
    """Phi, whose output layer has a bias."""

    turned = ("partial_rotary_factor", 0.5)
    dropouts = ("resid_pdrop", "embd_pdrop", "attention_dropout")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.head_bias = Parameter((self.tokens.rows,))

    @classmethod
    def is_side_by_side(cls, architecture: Architecture) -> bool:
        """True: both read one norm's output."""
        return True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """Nothing of its own; no head shares keys and values, and none is normed."""
        c.only("qk_layernorm", False)
        c.only("num_key_value_heads", c.size("num_attention_heads", 32))
        return {}

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return PhiBlock()
