"""Feed-forward layers that several model types have.

Source: transformers (models/llama/modeling_llama.py, LlamaMLP)
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size
from calculator.layers.basic import Linear, Projection
from calculator.layers.layer import Unary


class Activation(StrEnum):
    """The function between two products, by its name in a config.json."""

    SILU = "silu"
    RELU = "relu"
    GELU = "gelu"
    GELU_TANH = "gelu_pytorch_tanh"


def activated(x: Tensor, activation: Activation) -> Tensor:
    """f(x) in one operation, which keeps its input, or its result in `RELU`."""
    match activation:
        case Activation.SILU:
            return op.silu(x)
        case Activation.RELU:
            return op.relu(x)
        case Activation.GELU | Activation.GELU_TANH:
            return op.gelu(x)


@dataclass(eq=False)
class FeedForward(Unary):
    """W_2 f(W_1 x), and dropout where it is `dropped`.

    Attributes:
        names: of both products' modules.
        function: the operation between them.
        linear: the class of both.
    """

    hidden: Size
    inner: Size
    names: tuple[str, str]
    function: Callable[[Tensor], Tensor]
    biased: bool = True
    dropped: bool = True
    linear: type[Projection] = Linear

    def __post_init__(self) -> None:
        first, second = self.names
        self.expand = self.linear(self.hidden, self.inner, self.biased, name=first)
        self.contract = self.linear(self.inner, self.hidden, self.biased, name=second)

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        x = self.expand(x)
        x = self.function(x)
        x = self.contract(x)
        return op.dropout(x) if self.dropped else x


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
