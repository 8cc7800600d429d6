"""Tensors kept for backward by each operation: PyTorch 2.13, tools/autograd/derivatives.yaml."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from calculator.autograd import operations as op
from calculator.autograd.backward import backward, gradients_of
from calculator.autograd.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT64, DType
from calculator.autograd.graph import Parameter, Tensor, Weight
from calculator.autograd.mode import Mode
from calculator.autograd.sizes import ONE, Shape, ShapeError, Size, elements_of, size
from calculator.autograd.tape import Tape
from calculator.layers.attention import scores_of
from calculator.parts import Part
from tests.calculator.living import living, living_as

T = TypeVar("T")

B, S, D, F, H, K, V = (size(name) for name in ("batch", "sequence", "d", "f", "h", "k", "v"))
ROWS: Shape = (B, S)
SHAPE: Shape = (B, S, D)
X = (elements_of(SHAPE), FLOAT32)


def tape(autocast: bool = False, batch: Size = B) -> Tape:
    mode = Mode(FLOAT32, FLOAT16 if autocast else None, dropout=True, batch=batch)
    return Tape(mode)


def weight(t: Tape, *shape: Size) -> Weight:
    return t.weight(Parameter(shape))


def made(t: Tape, dtype: DType = FLOAT32, shape: Shape = SHAPE) -> Tensor:
    """A tensor with a history that keeps nothing: the output of scaling a leaf without bytes."""
    return op.cast(op.scale(weight(t, *shape)), dtype)


def normed(x: Tensor) -> Tensor:
    return op.layer_norm(x, weight(x.tape, D), weight(x.tape, D))  # type: ignore[arg-type]


POINTWISE: dict[str, tuple[Callable[[Tensor], Tensor], dict[tuple[Size, DType], int]]] = {
    "add": (lambda x: op.add(x, x), {}),
    "scale": (op.scale, {}),
    "shift": (op.shift, {}),
    "copy": (op.copy, {}),
    "GELU": (op.gelu, {X: 1}),
    "SiLU": (op.silu, {X: 1}),
    "tanh": (op.tanh, {X: 1}),
    "ReLU": (op.relu, {X: 1}),
    "power": (op.power, {X: 1}),
    "softmax": (op.softmax, {X: 1}),
    "safe softmax": (op.safe_softmax, {X: 1}),
    "dropout": (op.dropout, {(X[0], BOOL): 1}),
    "layer norm": (normed, {X: 1, (elements_of(ROWS), FLOAT32): 2}),
    "linear": (lambda x: op.linear(x, weight(x.tape, F, D)), {X: 1}),  # type: ignore[arg-type]
    "where": (
        lambda x: op.masked_fill(x, x.tape.empty((S, S), BOOL)),
        {(elements_of((S, S)), BOOL): 1},
    ),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_an_operation_keeps_what_its_derivative_needs(name: str) -> None:
    operation, kept = POINTWISE[name]
    t = tape()
    x = made(t)
    y = operation(x)
    del x
    assert living_as(t.ledger, Part.ACTIVATIONS) == kept
    del y


@pytest.mark.parametrize("name", POINTWISE)
def test_backward_leaves_only_gradients(name: str) -> None:
    operation, _ = POINTWISE[name]
    t = tape()
    y = operation(made(t))
    backward([y], [t.like(y)])
    del y
    assert living(t.ledger) == living_as(t.ledger, Part.GRADIENTS)
    assert living(t.ledger)[X] == 1


def test_no_dropout_keeps_nothing_and_returns_its_input() -> None:
    t = Tape(Mode(dropout=False))
    x = made(t)
    assert op.dropout(x) is x


@pytest.mark.parametrize("both", [True, False])
def test_a_product_keeps_each_factor_that_the_others_gradient_needs(both: bool) -> None:
    t = tape()
    y = op.multiply(made(t), made(t) if both else t.empty(SHAPE, FLOAT32))
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2 if both else 1}
    del y


def test_an_embedding_keeps_indices_and_its_gradient_is_as_large_as_the_table() -> None:
    t = tape()
    indices = t.input(ROWS)  # which the training loop holds
    y = op.embedding(indices, weight(t, V, D))
    del indices
    assert y.shape == SHAPE
    assert living_as(t.ledger, Part.ACTIVATIONS) == {(elements_of(ROWS), INT64): 1}
    backward([y], [t.like(y)])
    del y
    assert living(t.ledger) == {(V * D, FLOAT32): 1, (elements_of(ROWS), INT64): 1}


def test_autocast_runs_products_in_16_bits_and_norms_and_softmax_in_32() -> None:
    # PyTorch's documentation of autocast: operations by number format
    t = tape(autocast=True)
    x = op.linear(made(t), weight(t, F, D))
    assert x.dtype is FLOAT16
    assert op.layer_norm(x, weight(t, F), weight(t, F)).dtype is FLOAT32
    assert op.softmax(x).dtype is FLOAT32
    assert op.power(x).dtype is FLOAT32
    assert op.gelu(x).dtype is FLOAT16
    assert op.add(x, made(t, FLOAT32, (B, S, F))).dtype is FLOAT32


@pytest.mark.parametrize(
    ("dtype", "forward", "back"),
    [
        (FLOAT16, [FLOAT32], [FLOAT16, FLOAT32]),
        (BFLOAT16, [FLOAT32, FLOAT32], [FLOAT32, FLOAT32, BFLOAT16]),
        (FLOAT32, [FLOAT32], [FLOAT32, FLOAT32]),
    ],
    ids=str,
)
def test_a_wide_softmax_copies_bfloat16_alone_and_its_backward_makes_a_product(
    dtype: DType, forward: list[DType], back: list[DType]
) -> None:
    # aten/src/ATen/native/SoftMax.cpp, softmax; cuda/SoftMax.cu, softmax_backward_cuda_out: the
    # input's gradient, then the product of gradient and result; a cast's gradient is a cast
    t = tape()
    x = made(t, dtype)
    gradient = t.empty(SHAPE, FLOAT32)
    y, made_forward = births(t, lambda: op.softmax(x, FLOAT32))
    _, made_back = births(t, lambda: gradients_of(y, gradient, [x]))
    assert (made_forward, made_back) == (forward, back)


def births(t: Tape, run: Callable[[], T]) -> tuple[T, list[DType]]:
    """The result, and the formats of all that was made, in order."""
    before = len(t.ledger.events)
    result = run()
    formats = {number: dtype for (_, dtype), number in t.ledger.sizes.items()}
    return result, [formats[event] for event in t.ledger.events[before:] if event > 0]


@pytest.mark.parametrize("one_sequence", [True, False])
def test_matmul_copies_heads_unless_there_is_one_sequence(one_sequence: bool) -> None:
    batch = ONE if one_sequence else B
    t = tape(batch=batch)
    shape = (batch, H, S, K)
    q, k = made(t, shape=shape), made(t, shape=shape)
    scores = scores_of(q, k)
    assert living(t.ledger)[elements_of(shape), FLOAT32] == (2 if one_sequence else 4)
    assert scores.shape == (batch, H, S, S)


FUSED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "flash": lambda q, k, v: op.flash_attention(q, k, v),
    "efficient": lambda q, k, v: op.efficient_attention(q, k, v, S),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_kernels_keep_no_scores(name: str) -> None:
    # Dao et al., 2022: queries, keys, values, output and one logarithm per row
    t = tape()
    shape = (B, H, S, K)
    q, k, v = (made(t, shape=shape) for _ in range(3))
    out = FUSED[name](q, k, v)
    del q, k, v
    kept = living_as(t.ledger, Part.ACTIVATIONS)
    assert kept[elements_of(shape), FLOAT32] == 4
    assert kept[elements_of((B, H, S)), FLOAT32] == 1
    assert not any(elements.dimensions.count(S.dimensions[0]) > 1 for elements, _ in t.ledger.sizes)
    del out


def test_views_of_one_tensor_take_no_bytes_and_their_gradients_are_joined() -> None:
    t = tape()
    joined = op.linear(t.empty(SHAPE, FLOAT32), weight(t, 3 * D, D))
    before = living(t.ledger)
    q, k, v = op.split(joined, D, D, D)
    assert living(t.ledger) == before
    y = op.add(op.add(q, k), v)
    backward([y], [t.like(y)])
    del joined, q, k, v, y
    assert (3 * X[0], FLOAT32) in t.ledger.sizes
    assert living(t.ledger) == {(3 * D * D, FLOAT32): 1}


def test_a_broadcast_follows_from_the_shapes() -> None:
    t = tape()
    wide, narrow = made(t), made(t, shape=(ONE, S, D))
    assert op.add(narrow, wide).shape == SHAPE
    assert op.multiply(wide, made(t, shape=(D,))).shape == SHAPE
    assert op.matmul(made(t, shape=(ONE, H, S, K)), made(t, shape=(B, H, K, S))).shape == (
        B,
        H,
        S,
        S,
    )


WRONG: dict[str, Callable[[Tape], object]] = {
    "a sum": lambda t: op.add(made(t), made(t, shape=(B, S, F))),
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
