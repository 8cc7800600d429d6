from typing import Any

import pytest
import torch

from training.averaging.state import is_usable

SHAPES = [torch.Size([2, 3]), torch.Size([4])]
ENTRIES = [{"type": "tensor", "index": 0}, {"type": "value", "value": 0.02}]
METADATA = {"epoch": 3, "optimizer_metadata": ENTRIES}


def make_tensors() -> list[torch.Tensor]:
    return [torch.zeros(2, 3), torch.zeros(4), torch.zeros(9, dtype=torch.uint8)]


def test_a_whole_state_is_usable() -> None:
    assert is_usable(METADATA, make_tensors(), SHAPES)


@pytest.mark.parametrize("arrived", [0, 1, 2])
def test_a_state_whose_sender_died_is_not_usable(arrived: int) -> None:
    assert not is_usable(METADATA, make_tensors()[:arrived], SHAPES)


# 1e3 in each of four is a root mean square of 1,000; 1e30 squared does not fit into 32 bits.
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e3, 1e30])
def test_a_state_that_is_not_finite_or_huge_is_not_usable(value: float) -> None:
    tensors = make_tensors()
    tensors[1][:] = value
    assert not is_usable(METADATA, tensors, SHAPES)


def test_the_state_of_another_model_is_not_usable() -> None:
    assert not is_usable(METADATA, make_tensors(), [torch.Size([3, 2]), torch.Size([4])])


@pytest.mark.parametrize(
    "metadata",
    [{}, {"epoch": "3", "optimizer_metadata": ENTRIES}, {"epoch": 3, "optimizer_metadata": None}],
)
def test_a_state_that_does_not_say_what_it_is_is_not_usable(metadata: dict[str, Any]) -> None:
    assert not is_usable(metadata, make_tensors(), SHAPES)


def test_a_state_of_whole_numbers_is_not_usable() -> None:
    tensors = make_tensors()
    tensors[0] = tensors[0].int()
    assert not is_usable(METADATA, tensors, SHAPES)
