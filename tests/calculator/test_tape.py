"""Autograd in small; what each case keeps was read in PyTorch 2.13 (derivatives.yaml, engine)."""

import pytest

from calculator import operations as op
from calculator.ledger import Part
from calculator.tape import Tape, Tensor
from tests.calculator.living import living, living_as


def tape(precision: str = "fp32", gradients_exist: bool = False) -> Tape:
    weight_item, autocast_item = {"fp32": (4, 4), "amp": (4, 2), "half": (2, 2)}[precision]
    return Tape(weight_item, autocast_item, gradients_exist)


def run_backward(t: Tape, output: Tensor) -> None:
    t.backward([output], [t.like(output)])


def test_weights_are_static_and_take_no_bytes_on_the_tape() -> None:
    t = tape()
    t.weight("d*d")
    assert not living(t.ledger)


def test_a_tensor_dies_with_the_last_variable_that_holds_it() -> None:
    t = tape()
    x = t.empty("N*d", 4)
    alias = t.alias(x)
    del x
    assert living(t.ledger) == {("N*d", 4): 1}
    del alias
    assert not living(t.ledger)


def test_the_graph_keeps_a_tensor_that_no_variable_holds() -> None:
    t = tape()
    w = t.weight("d*d")
    x = op.linear(t, t.empty("N*d", 4), w, "N*d")
    y = op.keep_input(t, x)
    del x
    # the linear layer's input and the GELU's input are kept; the output is held by `y`
    assert living_as(t.ledger, Part.ACTIVATIONS) == {("N*d", 4): 2}
    assert living_as(t.ledger, Part.TEMPORARIES) == {("N*d", 4): 1}
    del y


def test_after_backward_only_the_weights_gradients_live() -> None:
    t = tape()
    first, second = t.weight("d*f"), t.weight("f*d")
    y = op.linear(t, op.keep_input(t, op.linear(t, t.empty("N*d", 4), first, "N*f")), second, "N*d")
    run_backward(t, y)
    del y
    assert living(t.ledger) == {("d*f", 4): 1, ("f*d", 4): 1}
    assert living_as(t.ledger, Part.GRADIENTS) == living(t.ledger)


def test_gradients_that_exist_are_added_to_in_place() -> None:
    t = tape(gradients_exist=True)
    w = t.weight("d*d")
    y = op.linear(t, t.empty("N*d", 4), w, "N*d")
    run_backward(t, y)
    del y
    assert not living(t.ledger)


def test_a_weight_that_is_used_twice_has_one_gradient() -> None:
    t = tape()
    w = t.weight("d*d")
    y = op.linear(t, op.linear(t, t.empty("N*d", 4), w, "N*d"), w, "N*d")
    run_backward(t, y)
    del y
    assert living(t.ledger) == {("d*d", 4): 1}


def test_nothing_is_kept_for_what_needs_no_gradient() -> None:
    t = tape()
    y = op.keep_input(t, t.empty("N*d", 4))
    assert y.node is None
    assert living(t.ledger) == {("N*d", 4): 1}


def test_autocast_copies_a_weight_once_a_forward_pass() -> None:
    t = tape("amp")
    w = t.weight("d*d")
    x = op.linear(t, t.empty("N*d", 4), w, "N*d")
    x = op.linear(t, x, w, "N*d")
    assert living(t.ledger)["d*d", 2] == 1
    t.end_autocast()
    assert living(t.ledger)["d*d", 2] == 1  # the graph still keeps it
    run_backward(t, x)
    del x
    assert living(t.ledger) == {("d*d", 4): 1}


@pytest.mark.parametrize("precision", ["fp32", "half"])
def test_without_autocast_weights_are_not_copied(precision: str) -> None:
    t = tape(precision)
    assert not t.autocasting
    w = t.weight("d*d")
    y = op.linear(t, t.empty("N*d", t.weight_item), w, "N*d")
    assert ("d*d", 2) not in living(t.ledger)
    del y


def two_products(t: Tape) -> tuple[Tensor, list[Tensor]]:
    weights = [t.weight("d*d") for _ in range(3)]
    x = op.linear(t, t.empty("N*d", 4), weights[0], "N*d")

    def block(x: Tensor) -> Tensor:
        for w in weights[1:]:
            x = op.keep_input(t, op.linear(t, x, w, "N*d"))
        return x

    return t.checkpoint(block, x), [*weights]


def test_checkpointing_keeps_the_inputs_alone() -> None:
    t = tape()
    y, _weights = two_products(t)
    # the first product's input, and the block's input; the block's four kept tensors are gone
    assert living_as(t.ledger, Part.ACTIVATIONS) == {("N*d", 4): 2}
    del y


def test_what_was_thrown_away_is_computed_again_and_freed() -> None:
    t = tape()
    y, weights = two_products(t)
    before = len(t.ledger.events)
    run_backward(t, y)
    del y
    born_again = [event for event in t.ledger.events[before:] if event == 1]
    assert len(born_again) > 4
    assert living(t.ledger) == {("d*d", 4): len(weights)}


def test_a_checkpoint_inside_a_checkpoint_is_part_of_it() -> None:
    t = tape()
    w = t.weight("d*d")
    x = op.linear(t, t.empty("N*d", 4), w, "N*d")

    def inner(x: Tensor) -> Tensor:
        return op.keep_input(t, x)

    y = t.checkpoint(lambda x: t.checkpoint(inner, op.keep_input(t, x)), x)
    assert living_as(t.ledger, Part.ACTIVATIONS) == {("N*d", 4): 2}
    run_backward(t, y)
    del x, y
    assert living(t.ledger) == {("d*d", 4): 1}


def test_gradients_can_be_handed_back_instead_of_kept() -> None:
    t = tape()
    w, other = t.weight("d*d"), t.weight("d*d")
    x = t.leaf(t.empty("N*d", 4))
    y = op.linear(t, x, w, "N*d")
    found = t.gradients_of(y, t.like(y), [x, w, other])
    assert [None if g is None else g.elements for g in found] == ["N*d", "d*d", None]
    assert not living_as(t.ledger, Part.GRADIENTS)


def test_a_layer_is_marked_forward_and_backward() -> None:
    t = tape()
    w = t.weight("d*d")
    x = t.empty("N*d", 4)
    for position in range(2):
        with t.in_layer("layers", position):
            x = op.linear(t, x, w, "N*d")
    run_backward(t, x)
    marks = [mark for _, mark in t.ledger.marks]
    assert marks == [
        ("layers", 0, False),
        ("layers", 1, False),
        ("layers", 1, True),
        ("layers", 0, True),
    ]
