"""The layers that all models are made of.

Source: torch (nn.Linear, nn.Embedding, nn.LayerNorm), transformers (pytorch_utils.py,
models/t5/modeling_t5.py, models/llama/modeling_llama.py).
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.sizes import Size
from calculator.layers.layer import Layer, Unary


@dataclass(eq=False)
class Linear(Layer):
    """nn.Linear: x W^T, plus a bias where there is one."""

    inputs: Size
    outputs: Size
    biased: bool = True

    def __post_init__(self) -> None:
        self.weight = Parameter((self.outputs, self.inputs))
        self.bias = Parameter((self.outputs,)) if self.biased else None

    def __call__(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        bias = None if self.bias is None else x.tape.weight(self.bias)
        return op.linear(x, x.tape.weight(self.weight), bias)


@dataclass(eq=False)
class Conv1D(Layer):
    """GPT-2's linear layer, whose weight stands the other way round."""

    inputs: Size
    outputs: Size

    def __post_init__(self) -> None:
        self.weight = Parameter((self.inputs, self.outputs))
        self.bias = Parameter((self.outputs,))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        return op.conv1d(x, x.tape.weight(self.weight), x.tape.weight(self.bias))


@dataclass(eq=False)
class Embedding(Layer):
    """nn.Embedding: a row of the table for each index."""

    rows: Size
    width: Size

    def __post_init__(self) -> None:
        self.weight = Parameter((self.rows, self.width))

    def __call__(self, indices: Tensor) -> Tensor:
        """(...) -> (..., width)."""
        return op.embedding(indices, indices.tape.weight(self.weight))

    def unembed(self, x: Tensor, bias: Parameter | None = None) -> Tensor:
        """x W^T + b with the same table: (..., width) -> (..., rows)."""
        t = x.tape
        return op.linear(x, t.weight(self.weight), None if bias is None else t.weight(bias))


@dataclass(eq=False)
class LayerNorm(Unary):
    """nn.LayerNorm."""

    width: Size
    biased: bool = True

    def __post_init__(self) -> None:
        self.weight = Parameter((self.width,))
        self.bias = Parameter((self.width,)) if self.biased else None

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        bias = None if self.bias is None else x.tape.weight(self.bias)
        return op.layer_norm(x, x.tape.weight(self.weight), bias)


@dataclass(eq=False)
class T5Norm(Layer):
    """w * (x / sqrt(mean(x^2) + eps)) in plain operations, the squares in 32 bits."""

    width: Size

    def __post_init__(self) -> None:
        self.weight = Parameter((self.width,))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        variance = op.mean_of_rows(op.square(op.cast(x, FLOAT32)))
        root = op.rsqrt(op.shift(variance))
        del variance  # dies here
        normed = op.multiply(x, root)
        del root  # dies here
        weight = x.tape.weight(self.weight)
        if weight.dtype is not FLOAT32:
            normed = op.cast(normed, weight.dtype)
        return op.multiply(weight, normed)


@dataclass(eq=False)
class RMSNorm(Unary):
    """w * (x / sqrt(mean(x^2) + eps)) as Llama writes it: all but the last product in 32 bits."""

    width: Size

    def __post_init__(self) -> None:
        self.weight = Parameter((self.width,))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed = op.cast(normalised(x), x.dtype)
        return op.multiply(x.tape.weight(self.weight), normed)


def normalised(x: Tensor) -> Tensor:
    """x / sqrt(mean(x^2) + eps) in 32 bits."""
    wide = op.cast(x, FLOAT32)
    squares = op.power(wide)
    variance = op.mean_of_rows(squares)
    del squares  # dies here
    root = op.rsqrt(op.shift(variance))
    normed = op.multiply(wide, root)
    del variance  # held until here
    return normed
