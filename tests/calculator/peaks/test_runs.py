from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.peaks.runs import SIMULATED, layer_runs
from tests.calculator.plans import examples


def first_and_last_uses(layers: int, groups: int, own_last: bool) -> list[tuple[bool, bool]]:
    """For each layer, whether it is the first and whether it is the last to use its weights."""
    shared = layers - int(own_last)
    slots = [place % groups for place in range(shared)] + ["own"] * own_last
    return [
        (slots.index(slot) == place, slot not in slots[place + 1 :])
        for place, slot in enumerate(slots)
    ]


SHAPES = st.tuples(st.integers(2, 80), st.integers(1, 80), st.booleans()).map(
    lambda drawn: (drawn[0], min(drawn[1], drawn[0] - drawn[2]), drawn[2])
)


@given(SHAPES)
@examples(200)
def test_runs_and_what_is_left_out_make_up_the_stack(shape: tuple[int, int, bool]) -> None:
    runs, left_out = layer_runs(*shape)
    assert sum(len(run.slots) for run in runs) + sum(left_out) == shape[0]
    assert len(runs) == len(left_out)


@given(SHAPES)
@examples(200)
def test_layers_of_a_run_all_make_or_all_share_copies_and_gradients(
    shape: tuple[int, int, bool],
) -> None:
    runs, left_out = layer_runs(*shape)
    uses = first_and_last_uses(*shape)
    place = 0
    for run, more in zip(runs, left_out, strict=True):
        length = len(run.slots) + more
        assert len(set(uses[place : place + length])) == 1
        place += length


@given(SHAPES)
@examples(200)
def test_only_a_full_run_leaves_layers_out(shape: tuple[int, int, bool]) -> None:
    for run, more in zip(*layer_runs(*shape), strict=True):
        assert len(run.slots) == SIMULATED or not more


@pytest.mark.parametrize(("layers", "on_tape"), [(2, 2), (4, 4), (5, 4), (96, 4)])
def test_a_tape_holds_at_most_four_layers_that_share_nothing(layers: int, on_tape: int) -> None:
    (run,), (left_out,) = layer_runs(layers, layers, own_last=False)
    assert run.slots == tuple(range(on_tape))
    assert left_out == layers - on_tape


def test_the_run_of_2021_has_four_shared_layers_first_and_last_and_one_of_its_own() -> None:
    # Borzunov et al., 2022: 64 layers, 4 groups, the last layer alone
    runs, left_out = layer_runs(64, 4, own_last=True)
    assert [len(run.slots) for run in runs] == [4, 4, 4, 1]
    assert left_out == (0, 51, 0, 0)
    slots = Counter(slot for run in runs for slot in run.slots)
    assert sorted(slots.values()) == [1, 3, 3, 3, 3]
