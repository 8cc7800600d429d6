"""GPT-NeoX and Pythia (transformers' GPTNeoXForCausalLM).

Source: transformers (models/gpt_neox/modeling_gpt_neox.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.layers.basic import LayerNorm
from calculator.layers.grouped import Held
from calculator.layers.stack import Block
from calculator.models.decoder import HIDDEN
from calculator.models.partial import ALIKE, FeedForward, PartialAttention, PartialDecoder


@dataclass(eq=False)
class NeoXBlock(Block):
    """Attention and feed-forward layer with a norm each, on the same input if `side_by_side`."""

    side_by_side: bool
    biased: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.norm_2 = LayerNorm(HIDDEN)
        self.attention = PartialAttention(HIDDEN, ALIKE, self.biased, self.biased, fused=True)
        self.feed_forward = FeedForward(plain=False)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        attended, _probabilities = self.attention(self.norm_1(x), held)
        attended = op.dropout(attended)
        if not self.side_by_side:
            attended = op.add(attended, x)
        forwarded = self.feed_forward(self.norm_2(x if self.side_by_side else attended))
        forwarded = op.dropout(forwarded)
        total = op.add(forwarded, attended)
        return op.add(total, x) if self.side_by_side else total


@dataclass(eq=False)
class GPTNeoX(PartialDecoder):
    """GPT-NeoX, whose output layer has weights of its own by default."""

    turned = ("rotary_pct", 0.25)
    dropouts = ("hidden_dropout", "attention_dropout")

    @classmethod
    def is_side_by_side(cls, architecture: Architecture) -> bool:
        """True where each has a norm of the same input."""
        return architecture.has("use_parallel_residual")

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return NeoXBlock(cls.is_side_by_side(architecture), architecture.has("attention_bias"))
