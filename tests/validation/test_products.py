"""Costs of parts of matrices; what updates send and hold is in the rows of Muon."""

import pytest

from calculator.optimizers.products import (
    BANDWIDTH,
    HOP,
    MACHINE,
    At,
    Matrix,
)


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
