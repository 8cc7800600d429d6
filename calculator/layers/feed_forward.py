"""Feed-forward layers that several model types have.

Source: transformers (models/llama/modeling_llama.py, LlamaMLP)
"""

from dataclasses import dataclass
from enum import StrEnum

from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size
from calculator.layers.basic import Linear
from calculator.layers.layer import Unary


class Activation(StrEnum):
    """The function between two products, by its name in a config.json."""

    SILU = "silu"
    GELU_TANH = "gelu_pytorch_tanh"


def activated(x: Tensor, activation: Activation) -> Tensor:
    """f(x); each of these is one operation that keeps its input."""
    match activation:
        case Activation.SILU:
            return op.silu(x)
        case Activation.GELU_TANH:
            return op.gelu(x)


@dataclass(eq=False)
class GatedFeedForward(Unary):
    """W_down (f(W_gate x) * W_up x)."""

    hidden: Size
    inner: Size
    activation: Activation = Activation.SILU
    biased: bool = False

    def __post_init__(self) -> None:
        self.gate = Linear(self.hidden, self.inner, self.biased, name="gate_proj")
        self.up = Linear(self.hidden, self.inner, self.biased, name="up_proj")
        self.down = Linear(self.inner, self.hidden, self.biased, name="down_proj")

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        return self.down(op.multiply(activated(self.gate(x), self.activation), self.up(x)))
