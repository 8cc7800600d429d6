r"""Reversible layers: the backward pass computes each layer's inputs from its outputs.

Two streams go through every layer, an attention branch f and a feed-forward branch g:

.. math:: y_1 = x_1 + f(x_2), \quad y_2 = x_2 + g(y_1)

and back: :math:`x_2 = y_2 - g(y_1)`, :math:`x_1 = y_1 - f(x_2)`. Only the last outputs are kept,
so activations do not grow with depth; the price is one more forward pass.
Source: Gomez et al. 2017, arXiv:1707.04585, eq. 6 to 8.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

Branch = Callable[[torch.Tensor], torch.Tensor]
Pair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class ReversibleLayer:
    """One layer: its two branches and the parameters that each of them trains."""

    f: Branch
    g: Branch
    f_parameters: tuple[torch.nn.Parameter, ...]
    g_parameters: tuple[torch.nn.Parameter, ...]

    def __call__(self, x1: torch.Tensor, x2: torch.Tensor) -> Pair:
        """The layer's outputs y1, y2."""
        y1 = x1 + self.f(x2)
        return y1, x2 + self.g(y1)


@dataclass(slots=True)
class _Tape:
    """The outputs of the layer whose backward pass comes next, and its number."""

    outputs: Pair | None = None
    layer: int = -1

    def put(self, layer: int, outputs: Pair) -> None:
        self.layer, self.outputs = layer, outputs if layer >= 0 else None

    def take(self, layer: int) -> Pair:
        if self.outputs is None or self.layer != layer:
            raise RuntimeError(
                "a reversible pass keeps no activations: call backward once for each forward"
            )
        return self.outputs


class _ReversibleFunction(torch.autograd.Function):
    """A layer that saves nothing and finds its outputs on the tape when backward reaches it."""

    @staticmethod
    def forward(
        ctx: Any,
        layer: ReversibleLayer,
        number: int,
        tape: _Tape,
        x1: torch.Tensor,
        x2: torch.Tensor,
        *parameters: torch.nn.Parameter,
    ) -> Pair:
        device_type = x1.device.type
        ctx.layer, ctx.number, ctx.tape = layer, number, tape
        ctx.autocast = nullcontext()
        if torch.amp.is_autocast_available(device_type):  # not where nothing is computed
            ctx.autocast = torch.autocast(
                device_type,
                dtype=torch.get_autocast_dtype(device_type),
                enabled=torch.is_autocast_enabled(device_type),
                cache_enabled=False,  # a cast made without gradients must not serve with them
            )
        return layer(x1, x2)

    @staticmethod
    def backward(ctx: Any, *output_gradients: torch.Tensor) -> tuple[Any, ...]:
        d1, d2 = output_gradients
        layer: ReversibleLayer = ctx.layer
        y1, y2 = ctx.tape.take(ctx.number)
        with ctx.autocast:
            g_out, into_y1, g_gradients = recompute(layer.g, y1, layer.g_parameters, d2)
            x2, d1 = y2 - g_out, d1 + into_y1
            f_out, into_x2, f_gradients = recompute(layer.f, x2, layer.f_parameters, d1)
            x1, d2 = y1 - f_out, d2 + into_x2
        ctx.tape.put(ctx.number - 1, (x1, x2))
        return None, None, None, d1, d2, *f_gradients, *g_gradients


def recompute(
    branch: Branch,
    value: torch.Tensor,
    parameters: Sequence[torch.nn.Parameter],
    gradient: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, Sequence[torch.Tensor]]:
    """Run a branch again: its output, and the gradients of its input and parameters."""
    with torch.enable_grad():
        leaf = value.detach().requires_grad_()
        output = branch(leaf)
        into_value, *into_parameters = torch.autograd.grad(
            output, [leaf, *parameters], gradient.to(output.dtype)
        )
    return output.detach(), into_value, into_parameters


def run_layers(
    layers: Sequence[ReversibleLayer], x1: torch.Tensor, x2: torch.Tensor, reversible: bool
) -> Pair:
    """Both streams after all layers; with `reversible`, keeping only these for backward.

    Both ways compute the same function.
    """
    if not (reversible and torch.is_grad_enabled()):
        for layer in layers:
            x1, x2 = layer(x1, x2)
        return x1, x2
    tape = _Tape()
    for number, layer in enumerate(layers):
        x1, x2 = _ReversibleFunction.apply(  # type: ignore[no-untyped-call]
            layer, number, tape, x1, x2, *layer.f_parameters, *layer.g_parameters
        )
    tape.put(len(layers) - 1, (x1.detach(), x2.detach()))
    return x1, x2
