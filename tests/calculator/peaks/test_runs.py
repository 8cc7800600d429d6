from hypothesis import given
from hypothesis import strategies as st

from calculator.peaks.runs import layer_runs
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
def test_runs_make_up_the_stack_and_layers_of_one_all_make_or_all_share_copies_and_gradients(
    shape: tuple[int, int, bool],
) -> None:
    runs, left_out = layer_runs(*shape)
    uses = first_and_last_uses(*shape)
    place = 0
    for run, more in zip(runs, left_out, strict=True):
        length = len(run.slots) + more
        assert len(set(uses[place : place + length])) == 1
        place += length
    assert place == shape[0]
