"""Autograd in small; what each case keeps was read in PyTorch 2.13 (derivatives.yaml, engine)."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from calculator.autograd import operations as op
from calculator.autograd.backward import backward, gradients_of
from calculator.autograd.dtypes import FLOAT16, FLOAT32
from calculator.autograd.graph import Parameter, Tensor, Weight
from calculator.autograd.mode import Mode
from calculator.autograd.sizes import Size, size
from calculator.autograd.tape import Tape
from calculator.catalog import MODELS
from calculator.estimate import estimate
from calculator.peaks.prepare import prepare
from calculator.peaks.step import run_step
from calculator.plan import Attention, Checkpointing, Optimizer, Plan, Precision
from calculator.report import Part, Phase
from calculator.resolution import resolve
from tests.calculator.living import living, living_as

N, D, F = size("tokens"), size("d"), size("f")
X = (N * D, FLOAT32)
WEIGHT = (D * D, FLOAT32)
MODES = {
    "fp32": Mode(),
    "amp": Mode(FLOAT32, FLOAT16),
    "half": Mode(FLOAT16),
}


def tape(precision: str = "fp32", gradients_exist: bool = False) -> Tape:
    return Tape(replace(MODES[precision], gradients_exist=gradients_exist))


def weight(t: Tape, outputs: Size = D, inputs: Size = D) -> Weight:
    return t.weight(Parameter((outputs, inputs)))


def tokens(t: Tape) -> Tensor:
    return t.empty((N, D), t.mode.weights)


def run_backward(t: Tape, output: Tensor) -> None:
    backward([output], [t.like(output)])


def test_weights_are_static_and_take_no_bytes_on_the_tape() -> None:
    t = tape()
    weight(t)
    assert not living(t.ledger)


def test_a_tensor_dies_with_the_last_variable_that_holds_it() -> None:
    t = tape()
    x = tokens(t)
    alias = t.alias(x)
    del x
    assert living(t.ledger) == {X: 1}
    del alias
    assert not living(t.ledger)


def test_the_graph_keeps_a_tensor_that_no_variable_holds() -> None:
    t = tape()
    w = weight(t)
    x = op.linear(tokens(t), w)
    y = op.gelu(x)
    del x
    # the linear layer's input and the GELU's input are kept; the output is held by `y`
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2}
    assert living_as(t.ledger, Part.TEMPORARIES) == {X: 1}
    del y


def test_after_backward_only_the_weights_gradients_live() -> None:
    t = tape()
    first, second = weight(t, F, D), weight(t, D, F)
    y = op.linear(op.gelu(op.linear(tokens(t), first)), second)
    run_backward(t, y)
    del y
    assert living(t.ledger) == {(D * F, FLOAT32): 2}
    assert living_as(t.ledger, Part.GRADIENTS) == living(t.ledger)


def test_gradients_that_exist_are_added_to_in_place() -> None:
    t = tape(gradients_exist=True)
    w = weight(t)
    y = op.linear(tokens(t), w)
    run_backward(t, y)
    del y
    assert not living(t.ledger)


def test_a_weight_that_is_used_twice_has_one_gradient() -> None:
    t = tape()
    w = weight(t)
    y = op.linear(op.linear(tokens(t), w), w)
    run_backward(t, y)
    del y
    assert living(t.ledger) == {WEIGHT: 1}


def test_nothing_is_kept_for_what_needs_no_gradient() -> None:
    t = tape()
    y = op.gelu(tokens(t))
    assert y.node is None
    assert living(t.ledger) == {X: 1}


def test_autocast_copies_a_weight_once_a_forward_pass() -> None:
    t = tape("amp")
    w = weight(t)
    x = op.linear(tokens(t), w)
    x = op.linear(x, w)
    assert living(t.ledger)[D * D, FLOAT16] == 1
    t.end_autocast()
    assert living(t.ledger)[D * D, FLOAT16] == 1  # the graph still keeps it
    run_backward(t, x)
    del x
    assert living(t.ledger) == {WEIGHT: 1}


@pytest.mark.parametrize("precision", ["fp32", "half"])
def test_without_autocast_weights_are_not_copied(precision: str) -> None:
    t = tape(precision)
    assert t.autocast is None
    w = weight(t)
    y = op.linear(tokens(t), w)
    assert (D * D, FLOAT16) not in living(t.ledger)
    del y


def two_products(t: Tape) -> tuple[Tensor, list[Tensor]]:
    weights = [weight(t) for _ in range(3)]
    x = op.linear(tokens(t), weights[0])

    def block(x: Tensor) -> Tensor:
        for w in weights[1:]:
            x = op.gelu(op.linear(x, w))
        return x

    return t.checkpoint(block, x), [*weights]


def test_checkpointing_keeps_the_inputs_alone() -> None:
    t = tape()
    y, _weights = two_products(t)
    # the first product's input, and the block's input; the block's four kept tensors are gone
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2}
    del y


def test_what_was_thrown_away_is_computed_again_and_freed() -> None:
    t = tape()
    y, weights = two_products(t)
    before = len(t.ledger.events)
    run_backward(t, y)
    del y
    born_again = [event for event in t.ledger.events[before:] if event == 1]
    assert len(born_again) > 4
    assert living(t.ledger) == {WEIGHT: len(weights)}


def test_a_checkpoint_inside_a_checkpoint_is_part_of_it() -> None:
    t = tape()
    w = weight(t)
    x = op.linear(tokens(t), w)

    def inner(x: Tensor) -> Tensor:
        return op.gelu(x)

    y = t.checkpoint(lambda x: t.checkpoint(inner, op.gelu(x)), x)
    assert living_as(t.ledger, Part.ACTIVATIONS) == {X: 2}
    run_backward(t, y)
    del x, y
    assert living(t.ledger) == {WEIGHT: 1}


def test_gradients_can_be_handed_back_instead_of_kept() -> None:
    t = tape()
    w, other = weight(t), weight(t)
    x = t.leaf(tokens(t))
    y = op.linear(x, w)
    found = gradients_of(y, t.like(y), [x, w, other])
    assert [None if g is None else g.elements for g in found] == [N * D, D * D, None]
    assert not living_as(t.ledger, Part.GRADIENTS)


def test_a_layer_is_marked_forward_and_backward() -> None:
    t = tape()
    w = weight(t)
    x = tokens(t)
    for position in range(2):
        with t.in_layer("layers", position):
            x = op.linear(x, w)
    run_backward(t, x)
    marks = [mark for _, mark in t.ledger.marks]
    assert marks == [
        ("layers", 0, False),
        ("layers", 1, False),
        ("layers", 1, True),
        ("layers", 0, True),
    ]


STATE = ("autocast", "recording", "cache_casts", "lowers_backward", "layer", "captured", "stops")
STATE += ("_casts", "_frame", "_recomputing")


def state(t: Tape) -> dict[str, Any]:
    return {name: getattr(t, name) for name in STATE}


STEPS = [
    (name, checkpointing, reversible)
    for name in ("bert-base", "gpt2-s", "t5-small", "gpt-j-6b", "dalle-12b")
    for checkpointing in Checkpointing
    for reversible in (True, False)
    if checkpointing is not Checkpointing.OPERATIONS or not (reversible or name == "dalle-12b")
]


@pytest.mark.parametrize(("name", "checkpointing", "reversible"), STEPS)
def test_a_step_leaves_the_tapes_state_as_it_was(
    name: str, checkpointing: Checkpointing, reversible: bool
) -> None:
    kernels = (Attention.EAGER, Attention.MATH, Attention.EFFICIENT)
    for kernel, precision in product(kernels[: 1 if name == "gpt-j-6b" else 3], Precision):
        plan = Plan(precision=precision, attention=kernel, checkpointing=checkpointing)
        plan = replace(plan, reversible=reversible)
        step = prepare(MODELS[name], resolve(MODELS[name], plan)).step
        assert state(run_step(step)) == state(Tape(step.mode))


def test_an_exception_restores_the_tapes_state() -> None:
    t = tape("amp")
    before = state(t)

    def fails(_: Tensor) -> Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), t.in_layer("layers", 0):
        t.checkpoint(fails, weight(t))
    with pytest.raises(ZeroDivisionError), t.setting(recording=False, autocast=None):
        fails(weight(t))
    assert state(t) == before


@pytest.mark.parametrize(
    ("dropout", "backward"), [(0.1, 1_464_955_904), (0.0, 1_462_858_752)], ids=["dropout", "none"]
)
def test_a_recomputation_that_stops_early_changes_nothing_for_the_layers_before_it(
    dropout: float, backward: int
) -> None:
    # python -m validation measure gpt2-m --batch-size 2 --sequence-length 1024 --layers 4
    # --attention math --reversible --checkpointing selective --optimizer sgd --device counting
    model = replace(MODELS["gpt2-m"], layers=4)
    plan = Plan(2, 1024, attention=Attention.MATH, checkpointing=Checkpointing.SELECTIVE)
    plan = replace(plan, optimizer=Optimizer.SGD, reversible=True, dropout=dropout)
    assert estimate(model, plan).phases[Phase.BACKWARD].total == backward
