"""The layers that all models are made of.

Source: torch (nn.Linear, nn.Embedding, nn.LayerNorm), transformers (pytorch_utils.py,
models/t5/modeling_t5.py, models/llama/modeling_llama.py).
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import Size, derived, size
from calculator.layers.layer import Layer, Unary
from calculator.layers.packed import Packed

# the tokens of a sequence that each of several GPUs has between the products of the layers
TOKENS: Final = derived(
    "tokens of a GPU", lambda tokens, gpus: tokens // gpus, SEQUENCE, size("tensor_parallel")
)


class Split(Enum):
    """The side of a weight of which each of several GPUs has a share: outputs, or inputs.

    Of the sum over `SCATTERED` rows each GPU has the part of its own tokens.
    """

    COLUMNS = "columns"
    ROWS = "rows"
    SCATTERED = "scattered"


@dataclass(eq=False)
class Projection(Layer):
    """A matrix product by a weight, which a technique may pack or put an `adapter` beside.

    `name` ends the path of the class's module, as far as that needs to be known from others.
    """

    inputs: Size
    outputs: Size
    biased: bool = True
    name: str = ""

    weight: Parameter = field(init=False)
    bias: Parameter | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.adapter: Adapter | None = None
        self.split: Split | None = None
        self.packed: Packed | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        if self.packed is not None:
            return self.packed_product(x, self.packed)
        out = self.shared_product(x)
        if self.adapter is None:
            return out
        dtype = out.dtype
        given = self.adapter.cast(x)
        out = op.add(out, op.scale(self.adapter(given)))
        return op.cast(out, dtype)

    def shared_product(self, x: Tensor) -> Tensor:
        """The same without an adapter; what several GPUs have shares of is summed over them."""
        match self.split:
            case Split.COLUMNS:
                return self.product(op.summed_back(x))
            case Split.ROWS:
                return op.summed(self.product(x))
            case Split.SCATTERED:
                return op.scattered(self.product(x), TOKENS)
            case None:
                return self.product(x)

    def packed_product(self, x: Tensor, packed: Packed) -> Tensor:
        """The same by a packed weight; under autocast an adapter takes its input as it is.

        Source: peft (tuners/lora/bnb.py, Linear4bit)
        """
        out = packed(x, self.bias)
        if self.adapter is None:
            return out
        out = op.copy(out)
        given = x if x.tape.autocast else self.adapter.cast(x)
        added = op.scale(self.adapter(given))
        if not x.tape.autocast:
            added = op.cast(added, out.dtype)
        return op.add(out, added)

    @abstractmethod
    def product(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs) without what an adapter adds."""


@dataclass(eq=False)
class Linear(Projection):
    """nn.Linear: x W^T, plus a bias where there is one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight = Parameter((self.outputs, self.inputs))
        self.bias = Parameter((self.outputs,)) if self.biased else None

    def product(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        bias = None if self.bias is None else x.tape.weight(self.bias)
        return op.linear(x, x.tape.weight(self.weight), bias)


@dataclass(eq=False)
class Adapter(Layer):
    """Two products of few columns between, in 32 bits whatever the layer is in; perhaps dropout.

    An adapter that `follows` the model is in the format of its weights. Beside a layer of which
    each of several GPUs has a share, so it has of the product on the side that is split.
    """

    inputs: Size
    rank: Size
    outputs: Size
    dropped: bool
    follows: bool = False
    split: Split | None = None

    def __post_init__(self) -> None:
        dtype = None if self.follows else FLOAT32
        self.down = Parameter((self.rank, self.inputs), dtype=dtype)
        self.up = Parameter((self.outputs, self.rank), dtype=dtype)
        if self.split is Split.ROWS:
            self.down.is_split, self.down.axis = True, 1
        elif self.split is Split.COLUMNS:
            self.up.is_split, self.up.axis = True, 0

    def cast(self, x: Tensor) -> Tensor:
        """The layer's input in the adapter's format."""
        return op.cast(x, x.tape.mode.weights if self.follows else FLOAT32)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        t = x.tape
        # what is dropped out dies with the first product
        narrow = op.linear(op.always_dropout(x) if self.dropped else x, t.weight(self.down))
        match self.split:
            case Split.COLUMNS:
                narrow = op.summed_back(narrow)
            case Split.ROWS:
                narrow = op.summed(narrow)
            case _:
                pass
        return op.linear(narrow, t.weight(self.up))


@dataclass(eq=False)
class Conv1D(Projection):
    """GPT-2's linear layer, whose weight is transposed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight = Parameter((self.inputs, self.outputs))
        self.bias = Parameter((self.outputs,))

    def product(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        assert self.bias is not None
        return op.conv1d(x, x.tape.weight(self.weight), x.tape.weight(self.bias))


@dataclass(eq=False)
class Embedding(Layer):
    """nn.Embedding: a row of the table for each index; the class's own `reads_input`.

    Encoder and decoder may be two `readers`, which have a trained copy each.
    """

    rows: Size
    width: Size
    reads_input: bool = False
    readers: int = 1

    def __post_init__(self) -> None:
        self.weight = Parameter((self.rows, self.width), table=True)
        self.asked = False  # whether a frozen table's rows ask for a gradient all the same
        self.copies: tuple[Parameter, ...] = ()  # trained ones that readers take rows from

    def __call__(
        self, indices: Tensor, scaled: bool = False, by_buffer: bool = False, reader: int = 0
    ) -> Tensor:
        """(...) -> (..., width); a class may multiply them by a number, perhaps a buffer."""
        t = indices.tape
        rows = op.embedding(indices, t.weight((self.copies or (self.weight,) * 2)[reader]))
        if by_buffer and t.mode.narrows_shards:  # the number is narrowed too, and kept
            rows = op.multiply(rows, t.empty((), rows.dtype))
        elif scaled:
            rows = op.scale(rows)
        if not self.asked:
            return rows
        rows = t.leaf(rows)
        t.hand_out(rows)  # whose graph holds it
        return rows

    def unembed(
        self, x: Tensor, bias: Parameter | None = None, copy: Parameter | None = None
    ) -> Tensor:
        """x W^T + b with the same table or a trained `copy`: (..., width) -> (..., rows)."""
        t = x.tape
        weight = t.weight(copy or self.weight)
        return op.linear(x, weight, None if bias is None else t.weight(bias))


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
class WeightlessNorm(Unary):
    """(x - mean) / sqrt(variance + eps) in 32 bits."""

    width: Size

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        return op.cast(op.layer_norm(op.cast(x, FLOAT32)), x.dtype)


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
        normed = op.multiply(x, root)
        del root  # dies here
        weight = x.tape.weight(self.weight)
        if weight.dtype is not FLOAT32:
            normed = op.cast(normed, weight.dtype)
        out = op.multiply(weight, normed)
        del variance  # held until here
        return out


@dataclass(eq=False)
class RMSNorm(Unary):
    """w * (x / sqrt(mean(x^2) + eps)) as Llama writes it: all but the last product in 32 bits."""

    width: Size

    def __post_init__(self) -> None:
        self.weight = Parameter((self.width,))

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed, variance = normalised(x)
        out = op.multiply(x.tape.weight(self.weight), op.cast(normed, x.dtype))
        del normed, variance  # held until here
        return out


@dataclass(eq=False)
class WideNorm(RMSNorm):
    """RMSNorm that multiplies by its weight before it goes back to the input's format."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed, variance = normalised(x)
        out = op.cast(op.multiply(x.tape.weight(self.weight), normed), x.dtype)
        del normed, variance  # held until here
        return out


def normalised(x: Tensor) -> tuple[Tensor, Tensor]:
    """x / sqrt(mean(x^2) + eps) in 32 bits, and the mean, which the classes hold to the end."""
    wide = op.cast(x, FLOAT32)
    root, variance = inverse_root(wide)
    return op.multiply(wide, root), variance


def inverse_root(wide: Tensor) -> tuple[Tensor, Tensor]:
    """1 / sqrt(mean(x^2) + eps), and the mean."""
    squares = op.power(wide)
    variance = op.mean_of_rows(squares)
    del squares  # dies here
    return op.rsqrt(op.shift(variance)), variance
