"""PyTorch's operations that pick, sort and add up rows, as routing to experts uses them.

Source: torch (tools/autograd/derivatives.yaml), autocast.
"""

from typing import Any

from calculator.autograd.dtypes import BOOL, FLOAT32, INT64
from calculator.autograd.graph import Made, Tensor
from calculator.autograd.mode import AMPERE
from calculator.autograd.operations import cast, factors
from calculator.autograd.scratch import rows_scratch
from calculator.autograd.sizes import ONE, ShapeError, Size


def largest(x: Tensor, count: Size) -> tuple[Tensor, Tensor]:
    """The largest values of each row and their places (`topk`): keeps the places."""
    shape = (*x.shape[:-1], count)
    places = x.tape.empty(shape, INT64)
    return x.tape.operation([x], shape, x.dtype, saves=[places]), places


def highest(x: Tensor) -> Tensor:
    """The largest value of each row, which stays as an axis of 1 (`max`): keeps its place."""
    shape = (*x.shape[:-1], ONE)
    return x.tape.operation([x], shape, x.dtype, saves=[x.tape.empty(shape, INT64)])


def gathered(x: Tensor, places: Tensor) -> Tensor:
    """The values of each row at places of its own (`gather`): keeps both."""
    return x.tape.operation([x], places.shape, x.dtype, saves=[x, places])


def rows_at(x: Tensor, places: Tensor, *shape: Size) -> Tensor:
    """x[places]: keeps the places; backward adds the rows up where they came from."""
    scratch = [Made((rows_scratch(places.elements),), BOOL)]
    return x.tape.operation([x], shape, x.dtype, saves=[places], scratch=scratch)


def sum_of_rows(x: Tensor) -> Tensor:
    """The sum over the last axis, which stays as an axis of 1; in 32 bits under autocast."""
    dtype = FLOAT32 if x.tape.autocast else x.dtype
    return x.tape.operation([x], (*x.shape[:-1], ONE), dtype)


def sum_of_groups(x: Tensor) -> Tensor:
    """The sum over the last axis but one; backward copies the gradient for each."""
    return x.tape.operation([x], (*x.shape[:-2], x.shape[-1]), x.dtype)


def divide(a: Tensor, b: Tensor) -> Tensor:
    """a /= b, whose backward needs both, so PyTorch copies `a` first: bytes as a / b has them."""
    whole = Made(a.shape, a.dtype)
    rules = [whole, Made(b.shape, b.dtype)]
    return a.tape.operation(
        [a, b], a.shape, a.dtype, saves=[a, b], rules=rules, product=whole, scratch=[whole] * 2
    )


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor, transposed: bool = True) -> Tensor:
    """Rows of each group by the group's own matrix: keeps rows, weight and where groups end.

    Autocast leaves it alone: rows are brought into the weight's format. The weight is (groups,
    outputs, inputs), so its gradient is a view, or (groups, inputs, outputs). Cards before compute
    capability 8.0 have no such kernel: transformers multiplies the groups one after the other, and
    makes the gradient of frozen weights, too.

    Source: torch (nn/functional.py, grouped_mm), transformers (integrations/moe.py, _grouped_mm,
    grouped_mm_fallback)

    Raises:
        ShapeError: for rows of another width than the weight's.
    """
    x = cast(x, weight.dtype)
    outputs, inputs = weight.shape[1:] if transposed else reversed(weight.shape[1:])
    if x.shape[-1] is not inputs:
        raise ShapeError(f"{x.shape} does not go into a product with {weight.shape}")
    rules = [Made(x.shape, x.dtype), Made(weight.shape, weight.dtype, transposed)]
    shape, one_by_one = (*x.shape[:-1], outputs), x.tape.mode.capability < AMPERE
    if one_by_one:  # checkpoints do not see what the node itself holds
        node: dict[str, Any] = {"saves": [x, weight], "holds": [ends], "whole": True}
    else:
        node = {"saves": [*factors(x, weight), ends]}
    return x.tape.operation([x, weight], shape, x.dtype, rules=rules, **node)
