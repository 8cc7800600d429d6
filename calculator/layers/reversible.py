"""Reversible layers: only the last outputs are kept, inputs are computed back from outputs.

Branches add to two streams in turn: y_1 = x_1 + f(x_2), then y_2 = x_2 + g(y_1). The backward pass
runs one branch again at a time and subtracts it.

Source: training/model/reversible.py, revnet
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.backward import gradients_of
from calculator.autograd.graph import Gradients, Recorder, Tensor

Branch = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Coupling:
    """A branch, and the weights (or other tensors) whose gradients it makes."""

    branch: Branch
    weights: Sequence[Tensor]


@dataclass(eq=False)
class Streams:
    """The two streams after a layer; the next backward pass starts from them."""

    first: Tensor | None
    second: Tensor | None

    def take(self) -> tuple[Tensor, Tensor]:
        """Both streams."""
        assert self.first is not None
        assert self.second is not None
        return self.first, self.second

    def put(self, first: Tensor | None, second: Tensor | None) -> None:
        """The streams before the layer whose backward pass is over."""
        self.first, self.second = first, second


def run(layers: Sequence[Sequence[Coupling]], x: Tensor, stack: str) -> Tensor:
    """The mean of both streams after all layers, each starting as `x`."""
    t = x.tape
    streams = Streams(x, x)
    first, second = x, x
    streams.put(None, None)
    for position, couplings in enumerate(layers):
        with t.in_layer(stack, position):
            first, second = _forward(t, couplings, streams, position, first, second)
    t.ledger.mark(stack, len(layers), backward=False)
    streams.put(t.alias(first), t.alias(second))
    total = op.add(first, second)
    return op.scale(total)


def _forward(
    t: Recorder,
    couplings: Sequence[Coupling],
    streams: Streams,
    position: int,
    first: Tensor,
    second: Tensor,
) -> tuple[Tensor, Tensor]:
    weights = [weight for coupling in couplings for weight in coupling.weights]
    sources = [first, second, *weights]
    with t.setting(recording=False):
        given = (first, second)
        for coupling in couplings:
            changed = op.add(first, coupling.branch(second))
            first, second = second, changed
        del given
        if len(couplings) % 2:
            first, second = t.alias(first), t.alias(second)

    def special(gradients: Gradients) -> Gradients:
        return _backward(t, couplings, streams, position, gradients)

    node = t.record(sources, special=special)
    if node:
        node.outputs = 2
        for index, stream in enumerate((first, second)):
            stream.node, stream.index = node, index
    return first, second


def _backward(
    t: Recorder,
    couplings: Sequence[Coupling],
    streams: Streams,
    position: int,
    gradients: Gradients,
) -> Gradients:
    """Undo the couplings from the last to the first."""
    held = []
    first, second = streams.take()
    d1, d2 = gradients
    weight_gradients: list[Gradients] = []
    for coupling in reversed(couplings):
        # the last coupling added branch(first) to what is now `second`
        assert d1 is not None
        assert d2 is not None
        with t.setting(cache_casts=False):
            output, into, found = _again(t, coupling, first, d2)
        weight_gradients.insert(0, found)
        second, first = first, op.add(second, output)
        d2, d1 = op.add(d1, into), d2
        held += [output, into]
    streams.put(first if position else None, second if position else None)
    return [d1, d2, *(item for found in weight_gradients for item in found)]


def _again(
    t: Recorder, coupling: Coupling, value: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Gradients]:
    """Run a branch again: its output, and the gradients of its input and weights."""
    leaf = t.leaf(_detached(value))
    with t.setting(recording=True, lowers_backward=t.mode.autocast is not None):
        with t.ledger.repeating():
            output = coupling.branch(leaf)
        same = gradient.dtype is output.dtype
        cast = gradient if same else t.like(gradient, output.dtype)
        into, *found = gradients_of(output, cast, [leaf, *coupling.weights])
    t.forget(leaf)
    assert into is not None
    return _detached(output), into, found


def _detached(x: Tensor) -> Tensor:
    return Tensor(x.tape, x.storage, x.shape, x.dtype)
