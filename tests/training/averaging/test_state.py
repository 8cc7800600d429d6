from typing import Any
from unittest.mock import MagicMock, patch

import hivemind
import pytest
import torch

from training.averaging.optimizer import RoundFailedError, SwarmOptimizer
from training.averaging.state import is_usable

SHAPES = [torch.Size([2, 3]), torch.Size([4])]
ENTRIES = [{"type": "tensor", "index": 0}, {"type": "value", "value": 0.02}]
METADATA = {"epoch": 3, "optimizer_metadata": ENTRIES}


def filled(value: float) -> list[torch.Tensor]:
    return [torch.zeros(2, 3), torch.full((4,), value), torch.zeros(9, dtype=torch.uint8)]


def test_a_whole_state_is_usable_by_its_own_model() -> None:
    assert is_usable(METADATA, filled(0.0), SHAPES)
    assert not is_usable(METADATA, filled(0.0), [torch.Size([3, 2]), torch.Size([4])])


@pytest.mark.parametrize(
    "tensors",
    [
        *(filled(0.0)[:arrived] for arrived in (0, 1, 2)),  # its sender died
        # 1e3 in each of four is a root mean square of 1,000; 1e30 squared takes more than 32 bits
        *(filled(value) for value in (float("nan"), float("inf"), -1e3, 1e30)),
        [torch.zeros(2, 3, dtype=torch.int), *filled(0.0)[1:]],
    ],
)
def test_a_state_that_is_cut_or_not_finite_or_huge_is_not_usable(
    tensors: list[torch.Tensor],
) -> None:
    assert not is_usable(METADATA, tensors, SHAPES)


@pytest.mark.parametrize(
    "metadata",
    [{}, {"epoch": "3", "optimizer_metadata": ENTRIES}, {"epoch": 3, "optimizer_metadata": None}],
)
def test_a_state_that_does_not_say_what_it_is_is_not_usable(metadata: dict[str, Any]) -> None:
    assert not is_usable(metadata, filled(0.0), SHAPES)


@pytest.mark.parametrize(("newest", "is_taken"), [(3, False), (4, True)])
def test_whoever_a_failed_step_leaves_behind_takes_the_state_at_once(
    newest: int, is_taken: bool
) -> None:
    names = ("_has_company_come", "_give_up_round", "load_state_from_peers", "local_epoch")
    replaced = {name: MagicMock(return_value=False) for name in names} | {
        "local_epoch": 3,
        "__del__": lambda _: None,
    }
    optimizer = object.__new__(type("Late", (SwarmOptimizer,), replaced))
    optimizer.tracker = MagicMock(global_epoch=newest)
    with patch.object(hivemind.Optimizer, "_update_global_epoch", side_effect=RoundFailedError):
        optimizer._update_global_epoch(None)
    assert replaced["load_state_from_peers"].called is is_taken
