"""FLOPs and formats of products, and shapes that fit; measured rows hold what operations keep."""

from collections.abc import Callable

import pytest

from calculator.autograd import operations as op
from calculator.autograd.backward import gradients_of
from calculator.autograd.dtypes import BFLOAT16, FLOAT32, DType
from calculator.autograd.graph import Parameter, Tensor, Weight
from calculator.autograd.mode import Mode
from calculator.autograd.sizes import (
    Shape,
    ShapeError,
    Size,
    constant,
    number_of,
    size,
)
from calculator.autograd.tape import Tape

B, S, D, F = (size(name) for name in ("batch", "sequence", "d", "f"))
SHAPE: Shape = (B, S, D)


def tape() -> Tape:
    return Tape(Mode(FLOAT32, dropout=True, batch=B))


def weight(t: Tape, *shape: Size) -> Weight:
    return t.weight(Parameter(shape))


def made(t: Tape, shape: Shape = SHAPE) -> Tensor:
    """A tensor with a history that keeps nothing: the output of scaling a leaf without bytes."""
    return op.cast(op.scale(weight(t, *shape)), FLOAT32)


def of(t: Tape, *numbers: int) -> Tensor:
    return made(t, tuple(map(constant, numbers)))


def matrix(t: Tape, *numbers: int) -> Weight:
    return weight(t, *map(constant, numbers))


def factors(t: Tape) -> tuple[Tensor, Tensor]:
    return of(t, 2, 3, 5), of(t, 2, 5, 7)


def heads(t: Tape) -> tuple[Tensor, Tensor, Tensor]:
    return of(t, 2, 3, 5, 7), of(t, 2, 3, 11, 7), of(t, 2, 3, 11, 7)


# torch/utils/flop_counter.py: a product of (b, m, k) and (b, k, n) has 2 b m k n FLOPs, attention's
# two have 4 b h q k d
PLAIN, ATTENTION = 2 * 2 * 3 * 5 * 7, 4 * 2 * 3 * 5 * 11 * 7
PRODUCTS: dict[str, tuple[Callable[[Tape], Tensor], int]] = {
    "linear": (lambda t: op.linear(of(t, 2, 3, 5), matrix(t, 7, 5)), PLAIN),
    "conv1d": (lambda t: op.conv1d(of(t, 2, 3, 5), matrix(t, 5, 7), matrix(t, 7)), PLAIN),
    "matmul": (lambda t: op.matmul(*factors(t)), PLAIN),
    "baddbmm": (lambda t: op.biased_matmul(of(t, 2, 3, 7), *factors(t)), PLAIN),
    "folded": (lambda t: op.folded(matrix(t, 2, 3, 7), *factors(t), constant(1)), PLAIN),
    "flash attention": (lambda t: op.flash_attention(*heads(t)), ATTENTION),
    "efficient attention": (lambda t: op.efficient_attention(*heads(t), constant(32)), ATTENTION),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_has_the_flops_that_pytorch_counts(name: str) -> None:
    operation, flops = PRODUCTS[name]
    t = tape()
    operation(t)
    assert [number_of(product[0], {}) for _, product in t.ledger.products] == [flops]


@pytest.mark.parametrize(
    ("changes", "backward"), [({}, FLOAT32), ({"lowers_backward": True}, BFLOAT16)]
)
def test_autocast_is_over_in_the_backward_pass_unless_it_runs_there_too(
    changes: dict[str, bool], backward: DType
) -> None:
    # torch/amp/autocast_mode.py: "Backward ops run in the same type that autocast used for
    # corresponding forward ops"; a layer that runs again there has autocast around both
    t = Tape(Mode(FLOAT32, autocast=BFLOAT16))
    a, b = of(t, 2, 3, 5), of(t, 2, 5, 7)
    with t.setting(autocast=None):
        y = op.matmul(a, b)
    with t.setting(**changes):
        gradients_of(y, t.like(y), [a, b])
    assert [product[1] for _, product in t.ledger.products] == [FLOAT32, backward, backward]


WRONG: dict[str, Callable[[Tape], object]] = {
    "a sum": lambda t: op.add(made(t), made(t, (B, S, F))),
    "a product with a weight": lambda t: op.linear(made(t), weight(t, D, F)),
    "GPT-2's product with a weight": lambda t: op.conv1d(made(t), weight(t, F, D), weight(t, D)),
    "a product of matrices": lambda t: op.matmul(made(t), made(t)),
    "a norm": lambda t: op.layer_norm(made(t), weight(t, F)),
    "a view": lambda t: op.view(made(t), B, S, F),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_raises(name: str) -> None:
    with pytest.raises(ShapeError):
        WRONG[name](tape())
