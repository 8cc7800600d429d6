"""Phi 3 and Phi 4 (transformers' Phi3ForCausalLM), whose projections are joined.

Source: transformers (models/phi3/modeling_phi3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size, together
from calculator.configuration import Configuration
from calculator.layers.basic import Linear
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.layers.rotary import Rotary
from calculator.models.decoder import FEED, HEAD, HIDDEN, rope_of, turned_of
from calculator.models.mistral import Mistral

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
