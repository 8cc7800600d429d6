"""Apertus (transformers' ApertusForCausalLM).

Source: transformers (models/apertus/modeling_apertus.py; activations.py, XIELUActivation).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL
from calculator.autograd.graph import Made, Parameter, Tensor
from calculator.autograd.sizes import ONE
from calculator.layers.basic import Linear
from calculator.layers.layer import Buffer, Unary
from calculator.models.decoder import FEED, HIDDEN, Decoder
from calculator.models.model import LLAMAS
from calculator.models.norms_after import TurnedAttention


@dataclass(eq=False)
class Xielu(Unary):
    """xIELU in plain operations, with a number for each side that is trained.

    a x^2 + b x for x > 0, otherwise (exp(min(x, e)) - 1 - x) c + b x.
    """

    def __post_init__(self) -> None:
        self.above, self.below = Parameter((ONE,)), Parameter((ONE,))
        self.slope, self.least = Buffer((), None), Buffer((), None)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        above = op.softplus(x.tape.weight(self.above))
        below = op.shift(op.softplus(x.tape.weight(self.below)))
        positive = x.tape.empty(x.shape, BOOL)
        right = op.add(op.multiply(op.multiply(above, x), x), op.scale(x))
        left = op.multiply(op.subtract(exponential(smaller(x)), x), below)
        left = op.add(left, op.scale(x))
        return chosen(positive, right, left)


def exponential(x: Tensor) -> Tensor:
    """exp(x) - 1, in 32 bits under autocast: keeps its output."""
    x = op.widened(x)
    made = Made(x.shape, x.dtype)
    return x.tape.operation([x], x.shape, x.dtype, keeps=True, scratch=[made])


def smaller(x: Tensor) -> Tensor:
    """The smaller one of x and a number: keeps x; backward halves the gradient where both are."""
    half, equal = Made(x.shape, x.dtype), Made(x.shape, BOOL)
    return x.tape.operation([x], x.shape, x.dtype, saves=[x], scratch=[equal, half])


def chosen(which: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """One where a condition holds, else the other: keeps the condition."""
    return one.tape.operation([one, other], one.shape, one.dtype, saves=[which])


@dataclass(eq=False)
class XieluFeedForward(Unary):
    """W_down xIELU(W_up x)."""

    def __post_init__(self) -> None:
        self.up = Linear(HIDDEN, FEED, biased=False, name="up_proj")
        self.down = Linear(FEED, HIDDEN, biased=False, name="down_proj")
        self.activation = Xielu()

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        return self.down(self.activation(self.up(x)))


@dataclass(eq=False)
class Apertus(Decoder):
    """A feed-forward layer without a gate; norms of each head's queries and keys."""

    whole_tokens = LLAMAS
    attention_class = TurnedAttention
    biases = ("attention_bias", "attention_bias", "")

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """Two projections without biases."""
        return XieluFeedForward()
