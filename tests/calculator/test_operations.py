"""What each operation keeps for backward: PyTorch 2.13, tools/autograd/derivatives.yaml."""

from collections.abc import Callable

import pytest

from calculator import operations as op
from calculator.ledger import Part
from calculator.operations import Heads
from calculator.tape import Tape, Tensor
from tests.calculator.living import living, living_as

X = ("N*d", 4)
HEADS = Heads(queries="N*a", keys="N*a", scores="B*h*S*S", rows="N*h", one_sequence=False)


def tape(autocast: bool = False) -> Tape:
    return Tape(4, 2 if autocast else 4, gradients_exist=False)


def made(t: Tape, item: int = 4, elements: str = "N*d") -> Tensor:
    """A tensor with a history that keeps nothing: the output of scaling a leaf without bytes."""
    leaf = t.weight(elements)
    return t.cast(op.scale(t, leaf), item)


POINTWISE: dict[str, tuple[Callable[[Tape, Tensor], Tensor], dict[tuple[str, int], int]]] = {
    "add": (lambda t, x: op.add(t, x, x), {}),
    "scale": (op.scale, {}),
    "shift": (op.shift, {}),
    "copy": (op.copy, {}),
    "GELU": (op.keep_input, {X: 1}),
    "tanh": (op.keep_output, {X: 1}),
    "power": (op.power, {X: 1}),
    "softmax": (op.softmax, {X: 1}),
    "safe softmax": (op.safe_softmax, {X: 1}),
    "dropout": (lambda t, x: op.dropout(t, x, active=True), {("N*d", 1): 1}),
    "no dropout": (lambda t, x: op.dropout(t, x, active=False), {}),
    "layer norm": (
        lambda t, x: op.layer_norm(t, x, t.weight("d"), t.weight("d"), "N"),
        {X: 1, ("N", 4): 2},
    ),
    "linear": (lambda t, x: op.linear(t, x, t.weight("d*f"), "N*f"), {X: 1}),
    "where": (lambda t, x: op.choose(t, t.empty("S*S", 1), x), {("S*S", 1): 1}),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_an_operation_keeps_what_its_derivative_needs(name: str) -> None:
    operation, kept = POINTWISE[name]
    t = tape()
    x = made(t)
    y = operation(t, x)
    del x
    assert living_as(t.ledger, Part.ACTIVATIONS) == kept
    del y


@pytest.mark.parametrize("name", POINTWISE)
def test_backward_leaves_only_gradients(name: str) -> None:
    operation, _ = POINTWISE[name]
    t = tape()
    y = operation(t, made(t))
    t.backward([y], [t.like(y)])
    del y
    assert living(t.ledger) == living_as(t.ledger, Part.GRADIENTS)
    assert living(t.ledger)["N*d", 4] == 1


@pytest.mark.parametrize("both", [True, False])
def test_a_product_keeps_each_factor_that_the_others_gradient_needs(both: bool) -> None:
    t = tape()
    y = op.multiply(t, made(t), made(t) if both else t.empty("N*d", 4))
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2 if both else 1}
    del y


def test_an_embedding_keeps_indices_and_its_gradient_is_as_large_as_the_table() -> None:
    t = tape()
    indices = t.input("N")
    y = op.embedding(t, t.weight("V*d"), indices, "N*d")
    del indices
    assert living_as(t.ledger, Part.ACTIVATIONS) == {("N", 8): 1}
    t.backward([y], [t.like(y)])
    del y
    assert living(t.ledger) == {("V*d", 4): 1}


def test_autocast_runs_products_in_16_bits_and_norms_and_softmax_in_32() -> None:
    # PyTorch's documentation of autocast: operations by number format
    t = tape(autocast=True)
    x = op.linear(t, made(t), t.weight("d*f"), "N*f")
    assert x.item == 2
    assert op.layer_norm(t, x, t.weight("f"), t.weight("f"), "N").item == 4
    assert op.softmax(t, x).item == 4
    assert op.power(t, x).item == 4
    assert op.keep_input(t, x).item == 2
    assert op.add(t, x, made(t, 4)).item == 4


@pytest.mark.parametrize("one_sequence", [True, False])
def test_matmul_copies_heads_unless_there_is_one_sequence(one_sequence: bool) -> None:
    heads = Heads("N*a", "N*a", "B*h*S*S", "N*h", one_sequence)
    t = tape()
    q, k = made(t, elements="N*a"), made(t, elements="N*a")
    scores = op.attention_scores(t, q, k, heads)
    assert living(t.ledger)["N*a", 4] == (2 if one_sequence else 4)
    del scores


@pytest.mark.parametrize("kernel", [op.flash_attention, op.efficient_attention])
def test_fused_kernels_keep_no_scores(
    kernel: Callable[[Tape, Tensor, Tensor, Tensor, Heads], Tensor],
) -> None:
    # Dao et al., 2022: queries, keys, values, output and a logarithm a row
    t = tape()
    q, k, v = (made(t, elements="N*a") for _ in range(3))
    out = kernel(t, q, k, v, HEADS)
    del q, k, v
    kept = living_as(t.ledger, Part.ACTIVATIONS)
    assert kept["N*a", 4] == 4
    assert kept["N*h", 4] == 1
    assert not any("S*S" in elements for elements, _ in t.ledger.sizes)
    del out


def test_views_of_one_tensor_take_no_bytes_and_their_gradients_are_joined() -> None:
    t = tape()
    joined = op.linear(t, t.empty("N*d", 4), t.weight("3*d*d"), "3*N*d")
    before = living(t.ledger)
    q, k, v = op.split(t, joined, ["N*d"] * 3)
    assert living(t.ledger) == before
    y = op.add(t, op.add(t, q, k), v)
    t.backward([y], [t.like(y)])
    del joined, q, k, v, y
    assert ("3*N*d", 4) in t.ledger.sizes
    assert living(t.ledger) == {("3*d*d", 4): 1}


def test_t5s_norm_in_plain_operations_keeps_input_root_and_product() -> None:
    # transformers' T5LayerNorm: w * (x * rsqrt(mean(x^2) + eps))
    t = tape()
    y = op.rms_norm(t, made(t), t.weight("d"), "N")
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2, ("N", 4): 1}
    del y
