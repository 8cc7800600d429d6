"""Reversible layers: only the last outputs are kept, inputs are computed back from outputs.

Branches add to two streams in turn: y_1 = x_1 + f(x_2), then y_2 = x_2 + g(y_1). The backward pass
runs one branch again at a time and subtracts it.

Source: training/reversible.py, revnet
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calculator import operations as op
from calculator.graph import Gradients, Tensor
from calculator.tape import Tape

Branch = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Coupling:
    """A branch, and the weights (or other leaves) whose gradients it makes."""

    branch: Branch
    weights: Sequence[Tensor]


def split_weights(
    weights: Mapping[str, Tensor], first_of_second: str
) -> tuple[list[Tensor], list[Tensor]]:
    """A layer's weights, those of its attention and those from `first_of_second` on."""
    names = list(weights)
    place = names.index(first_of_second)
    return [weights[n] for n in names[:place]], [weights[n] for n in names[place:]]


class Streams:
    """The two streams after a layer; the next backward pass starts from them."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.first: Tensor | None = first
        self.second: Tensor | None = second

    def take(self) -> tuple[Tensor, Tensor]:
        """Both streams."""
        assert self.first is not None
        assert self.second is not None
        return self.first, self.second

    def put(self, first: Tensor | None, second: Tensor | None) -> None:
        """The streams before the layer whose backward pass is over."""
        self.first, self.second = first, second


def run(t: Tape, layers: Sequence[Sequence[Coupling]], x: Tensor, stack: str) -> Tensor:
    """The mean of both streams after all layers, each starting as `x`."""
    streams = Streams(x, x)
    first, second = x, x
    streams.put(None, None)
    for position, couplings in enumerate(layers):
        with t.in_layer(stack, position):
            first, second = _forward(t, couplings, streams, position, first, second)
    t.ledger.mark(stack, len(layers), backward=False)
    streams.put(t.alias(first), t.alias(second))
    total = op.add(t, first, second)
    return op.scale(t, total)


def _forward(
    t: Tape,
    couplings: Sequence[Coupling],
    streams: Streams,
    position: int,
    first: Tensor,
    second: Tensor,
) -> tuple[Tensor, Tensor]:
    weights = [weight for coupling in couplings for weight in coupling.weights]
    sources = [first, second, *weights]
    t.recording = False
    given = (first, second)
    for coupling in couplings:
        changed = op.add(t, first, coupling.branch(second))
        first, second = second, changed
    del given
    if len(couplings) % 2:
        first, second = t.alias(first), t.alias(second)
    t.recording = True

    def special(gradients: Gradients) -> Gradients:
        return _backward(t, couplings, streams, position, gradients)

    t.record(sources, [first, second], special=special)
    return first, second


def _backward(
    t: Tape,
    couplings: Sequence[Coupling],
    streams: Streams,
    position: int,
    gradients: Gradients,
) -> Gradients:
    """Undo the couplings from the last to the first."""
    held = []
    first, second = streams.take()
    d1, d2 = gradients
    outer, t.cache_casts = t.cache_casts, False
    weight_gradients: list[Gradients] = []
    for coupling in reversed(couplings):
        # the last coupling added branch(first) to what is now `second`
        assert d1 is not None
        assert d2 is not None
        output, into, found = _again(t, coupling, first, d2)
        weight_gradients.insert(0, found)
        second, first = first, op.add(t, second, output)
        d2, d1 = op.add(t, d1, into), d2
        held += [output, into]
    t.cache_casts = outer
    streams.put(first if position else None, second if position else None)
    return [d1, d2, *(item for found in weight_gradients for item in found)]


def _again(
    t: Tape, coupling: Coupling, value: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Gradients]:
    """Run a branch again: its output, and the gradients of its input and weights."""
    leaf = t.leaf(Tensor(value.storage, value.elements, value.item))
    recording, t.recording = t.recording, True
    output = coupling.branch(leaf)
    cast = gradient if gradient.item == output.item else t.like(gradient, output.item)
    into, *found = t.gradients_of(output, cast, [leaf, *coupling.weights])
    t.recording = recording
    t.forget(leaf)
    assert into is not None
    detached = Tensor(output.storage, output.elements, output.item)
    return detached, into, found
