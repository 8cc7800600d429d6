"""training/sparse/layout.py: small numbers in bytes without gaps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.sparse.layout import pack, packed_bytes, unpack


def numbers_of(bits: int) -> st.SearchStrategy[tuple[int, list[int]]]:
    numbers = st.lists(st.integers(0, 2**bits - 1), max_size=70)
    return st.tuples(st.just(bits), numbers)


@given(st.sampled_from((2, 12)).flatmap(numbers_of))
def test_unpacked_numbers_are_those_that_were_packed(case: tuple[int, list[int]]) -> None:
    bits, numbers = case
    content = pack(torch.tensor(numbers, dtype=torch.int64), bits)
    assert content.dtype == torch.uint8
    assert len(content) == packed_bytes(len(numbers), bits)
    # no more than the bits themselves, filled up to a byte; 12-bit numbers come in pairs
    spare = 8 * len(content) - bits * len(numbers)
    assert spare < (8 if bits == 2 else 24)
    assert unpack(content, bits, len(numbers)).tolist() == numbers


def test_the_first_number_takes_the_lowest_bits() -> None:
    # 3 + 2*4 + 1*16 + 0*64; 0xABC and 0x123 as the little-endian number 0x123ABC
    assert pack(torch.tensor([3, 2, 1, 0]), 2).tolist() == [27]
    assert pack(torch.tensor([0xABC, 0x123]), 12).tolist() == [0xBC, 0x3A, 0x12]


@pytest.mark.parametrize(
    ("content", "bits", "count", "reason"),
    [
        ([4], 2, 1, "not zero"),
        ([0, 16, 0], 12, 1, "not zero"),
        *(([0] * size, 12, 2, f"{size} bytes for 2 numbers of 12 bits") for size in (0, 2, 4)),
    ],
)
def test_spare_bits_are_zero_and_no_byte_is_missing_or_more(
    content: list[int], bits: int, count: int, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        unpack(torch.tensor(content, dtype=torch.uint8), bits, count)
