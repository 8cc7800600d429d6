"""Frozen weights in 4 bits, as bitsandbytes' Linear4bit holds and multiplies them.

A product makes the whole weight again in the format it computes in, forward and backward. For few
tokens (1,536 at most, fewer on most cards) bitsandbytes may take a kernel that does not; counted is
the other.

Source: bitsandbytes (functional.py, quantize_4bit; autograd/_functions.py, MatMul4Bit;
backends/cuda/ops.py, gemm_4bit)
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, UINT8, DType
from calculator.autograd.graph import Gradients, Parameter, Recorder, Tensor
from calculator.autograd.ledger import Kind
from calculator.autograd.sizes import Size, constant, divided, elements_of, rounded_up
from calculator.layers.layer import Buffer, Layer

BLOCK, OUTER_BLOCK = 64, 256  # numbers that share a scale, and scales that share one of theirs
LEVELS, OUTER_LEVELS = constant(16), constant(256)


@dataclass(eq=False)
class Packed(Layer):
    """A weight of two numbers a byte with a scale for each block; perhaps `double`, scales too.

    Its bytes may be stored as if they were of another format, which FSDP wants.
    """

    inputs: Size
    outputs: Size
    double: bool
    storage: DType = UINT8

    def __post_init__(self) -> None:
        whole = self.outputs * self.inputs
        self.scales = divided(rounded_up(whole, BLOCK), BLOCK)
        shape, packed = (self.outputs, self.inputs), 2 * self.storage.width
        self.weight = Parameter(shape, trained=False, dtype=self.storage, packed=packed)
        self.levels = Buffer((LEVELS,), FLOAT32)
        self.absmax = Buffer((self.scales,), UINT8 if self.double else FLOAT32)
        outer = divided(rounded_up(self.scales, OUTER_BLOCK), OUTER_BLOCK)
        self.outer = Buffer((outer,), FLOAT32) if self.double else None
        self.offset = Buffer((), FLOAT32) if self.double else None
        self.outer_levels = Buffer((OUTER_LEVELS,), FLOAT32) if self.double else None
        self.bias: Buffer | None = None  # a copy in 16 bits of one that is in shards

    def __call__(self, x: Tensor, bias: Parameter | None = None) -> Tensor:
        """(..., inputs) -> (..., outputs), in 16 bits unless all is in 32, and perhaps a bias."""
        narrow = op.cast(x, x.tape.mode.arithmetic)
        out = op.cast(self.product(narrow, bias), x.dtype)
        del narrow  # held until here
        return out

    def product(self, x: Tensor, bias: Parameter | None = None) -> Tensor:
        """The product, of which nothing is kept: its gradient needs the weight alone.

        A trained bias gets the sum over the first axis, which the engine sums over all others.
        """
        t, shape, dtype = x.tape, x.shape, x.dtype
        needed = x.node is not None
        biases = [] if bias is None or not bias.trained else [t.weight(bias)]
        flops = 2 * elements_of(shape) * self.outputs

        def backward(_: Gradients) -> Gradients:
            sums = [t.empty((*shape[1:-1], self.outputs), each.dtype) for each in biases]
            if not needed:
                return [None, *sums]
            t.ledger.compute(flops, dtype, Kind.PACKED)
            whole = self.unpacked(t, dtype)
            gradient = t.empty(shape, dtype)
            del whole  # dies here
            return [gradient, *sums]

        summed = bool(biases) and len(shape) > 2
        node = t.record([x, *biases], special=backward, summed=summed)
        t.ledger.compute(flops, dtype, Kind.PACKED)
        wide = [t.empty((self.scales,), FLOAT32) for _ in range(2)] if self.double else []
        whole = t.empty((self.outputs, self.inputs), dtype)
        out = t.empty((*shape[:-1], self.outputs), dtype)
        del wide, whole  # die here
        out.node = node
        return out

    def unpacked(self, t: Recorder, dtype: DType) -> Tensor:
        """The whole weight; its scales in 32 bits die once it is there."""
        wide = t.empty((self.scales,), FLOAT32) if self.double else None
        whole = t.empty((self.outputs, self.inputs), dtype)
        del wide
        return whole
