"""Products of parts of matrices. What PyTorch sends for whole updates is in the rows of Muon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.autograd.ledger import ALL_REDUCE
from calculator.optimizers.products import (
    BANDWIDTH,
    CUT,
    HOP,
    MACHINE,
    NARROW,
    At,
    Matrix,
    Update,
    updated,
)

SIDES = st.integers(16, 4096)


@pytest.mark.oracle
@pytest.mark.parametrize("gpus", [2, 8, 16])
def test_the_cost_of_a_placement_is_pytorchs(gpus: int) -> None:
    from torch.distributed.tensor import Partial, Replicate, Shard, _collective_utils

    apart = gpus > MACHINE
    places = {At.WHOLE: Replicate(), At.ROWS: Shard(0), At.COLUMNS: Shard(1), At.SUM: Partial()}
    topology = _collective_utils.MeshTopoInfo(None, [gpus], [BANDWIDTH[apart]], [HOP[apart]])  # type: ignore[arg-type]
    for rows, columns in ((64, 96), (1024, 4096), (16384, 4096)):
        for at, target in ((one, other) for one in At for other in At):
            matrix = Matrix(rows, columns, at, gpus)
            size = matrix.part / 2**30
            asked = places[at], places[target], topology, 0, size
            cost, _ = _collective_utils._compute_placement_transition_cost(*asked)
            assert matrix.cost(target) == pytest.approx(cost), (at, target)


@pytest.mark.parametrize("at", CUT)
@given(rows=SIDES, columns=SIDES, gpus=st.integers(2, 16), number=st.sampled_from([2, 4]))
def test_an_update_sends_its_norm_and_has_the_mix_and_the_matrix_at_once(
    at: At, rows: int, columns: int, gpus: int, number: int
) -> None:
    found = updated(rows, columns, at, gpus, number)
    part = Matrix(rows, columns, at, gpus).part
    assert found.sent[0] == (ALL_REDUCE, NARROW)
    assert found.most > part * number // NARROW + part * (number > NARROW)


@given(rows=SIDES, columns=SIDES, gpus=st.integers(2, 16))
def test_the_parts_of_a_matrix_are_the_matrix(rows: int, columns: int, gpus: int) -> None:
    for at in CUT:
        matrix = Matrix(rows, columns, at, gpus)
        assert matrix.bytes <= matrix.padded < matrix.bytes + gpus * NARROW * max(rows, columns)
        assert matrix.turn.turn == matrix
        assert matrix.turn.part == matrix.part


def test_a_matrix_cut_by_its_columns_needs_none_of_the_others_for_its_gram() -> None:
    update = Update()
    columns = Matrix(96, 4096, At.COLUMNS, 8)
    made = update.multiply("gram", columns, columns.turn)
    assert (made.at, update.sent) == (At.SUM, [])
