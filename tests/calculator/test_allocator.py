from hypothesis import given
from hypothesis import strategies as st

from calculator.allocator import BLOCK, round_block

SIZES = st.integers(0, 2**50)


def test_a_block_is_512_bytes() -> None:
    # kMinBlockSize of PyTorch's CUDACachingAllocator
    assert BLOCK == 512


def test_nothing_takes_nothing() -> None:
    assert round_block(0) == 0


@given(SIZES)
def test_a_tensor_takes_the_fewest_whole_blocks_that_hold_it(size: int) -> None:
    taken = round_block(size)
    assert taken % 512 == 0
    assert 0 <= taken - size < 512


@given(SIZES, SIZES)
def test_two_tensors_never_take_less_than_their_sum_in_one(one: int, other: int) -> None:
    assert round_block(one) + round_block(other) >= round_block(one + other)
