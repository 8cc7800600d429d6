"""Rows that many GPUs send to one another, as experts that are divided among them use it.

Source: torch (distributed/_functional_collectives.py, distributed/tensor/_redistribute.py)
"""

from functools import partial

from calculator.autograd import operations as op
from calculator.autograd.graph import Gradients, Made, Tensor
from calculator.autograd.ledger import ALL_GATHER, ALL_TO_ALL
from calculator.autograd.sizes import Size, elements_of


def own_rows(x: Tensor, *shape: Size) -> Tensor:
    """A copy of this GPU's share of rows that all have; backward gathers the rows of all."""
    t = x.tape
    whole = Made(x.shape, x.dtype)

    def gathered(_: Gradients) -> Gradients:
        t.ledger.remark(ALL_GATHER, elements_of(whole.shape), whole.dtype)
        return [t.empty(*whole)]

    return t.operation([x], shape, x.dtype, special=gathered)


def all_rows(x: Tensor, *shape: Size) -> Tensor:
    """The rows of all GPUs; each copies its share of the gradient, which all of them have."""
    x.tape.ledger.remark(ALL_GATHER, elements_of(shape), x.dtype)
    return x.tape.operation([x], shape, x.dtype)


def exchanged(x: Tensor, *shape: Size) -> Tensor:
    """The rows that this GPU gets for those that it sends (`all_to_all_single`), and back."""
    t = x.tape
    t.ledger.remark(ALL_TO_ALL, x.elements, x.dtype)
    out = t.operation([x], shape, x.dtype)
    if out.node is not None:
        out.node.before = partial(t.ledger.remark, ALL_TO_ALL, elements_of(shape), x.dtype)
    return out


def sum_of_chosen(x: Tensor) -> Tensor:
    """The sum over the last axis but one; every row's gradient is seen in the sum's own bytes."""
    t, shape = x.tape, x.shape

    def seen(gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        return [Tensor(t, gradient.storage, shape, gradient.dtype)]

    return t.operation([x], (*shape[:-2], shape[-1]), x.dtype, special=seen)


def placed(x: Tensor, places: Tensor) -> Tensor:
    """x's rows at their places of a new tensor (`out[places] = x`): keeps the places."""
    return x.tape.operation([x], x.shape, x.dtype, saves=[places])


def hide_in_place(x: Tensor, hidden: Tensor) -> Tensor:
    """x with a number where a condition holds, in x's own bytes; backward copies the gradient."""
    out = op.view(x, *x.shape)
    out.node, out.index = x.tape.record([x], saves=[hidden]), 0
    return out
