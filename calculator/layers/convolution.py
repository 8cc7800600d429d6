"""Convolutions, as cuDNN computes them.

Source: torch (aten/src/ATen/native/Convolution.cpp, cudnn/ConvShared.cpp)
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.sizes import Shape, Size
from calculator.layers.layer import Layer


@dataclass(eq=False)
class Convolution(Layer):
    """nn.Conv1d and nn.Conv2d: a product for each place of a kernel, plus a bias.

    cuDNN's workspace is not counted: it depends on the library and on the card.
    """

    inputs: Size
    outputs: Size
    kernel: Shape
    reads_input: bool = False

    def __post_init__(self) -> None:
        self.asked = False  # whether its output asks for a gradient though all before is frozen
        self.weight = Parameter((self.outputs, self.inputs, *self.kernel))
        self.bias = Parameter((self.outputs,))

    def __call__(self, x: Tensor, places: Size, turned: bool = True) -> Tensor:
        """(batch, inputs, ...) -> (batch, outputs, places); its gradient may come `turned`."""
        weight, bias = x.tape.weight(self.weight), x.tape.weight(self.bias)
        out = op.convolution(x, weight, bias, places, turned)
        return x.tape.leaf(out) if self.asked else out
