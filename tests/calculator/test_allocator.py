from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calculator.allocator import BLOCK, Block, CachingAllocator, OutOfMemoryError

MIB = 1 << 20
# what a program may ask for: bytes of a tensor, or which living tensor to free
REQUESTS = st.lists(st.integers(1, 30 * MIB) | st.integers(-40, -1), max_size=120)


# From the comments at the top of CUDACachingAllocator.cpp: small requests (up to 1 MiB) are packed
# in buffers of 2 MiB, those between 1 and 10 MiB in blocks of 20 MiB, larger ones rounded to 2 MiB.
@pytest.mark.parametrize(
    ("expandable", "sizes", "reserved"),
    [
        (False, (1,), 2 * MIB),
        (False, (MIB, MIB), 2 * MIB),
        (False, (MIB, MIB, 1), 4 * MIB),
        (False, (MIB + 1,), 20 * MIB),
        (False, (10 * MIB - 1, 10 * MIB - 1), 20 * MIB),
        (False, (10 * MIB,), 10 * MIB),
        (False, (10 * MIB + 1,), 12 * MIB),
        (False, (1, 2 * MIB), 22 * MIB),
        # Note [Expandable Segments]: pages of 2 MiB in the small pool, of 20 MiB in the large one
        (True, (1,), 2 * MIB),
        (True, (11 * MIB,), 20 * MIB),
        (True, (11 * MIB, 11 * MIB), 40 * MIB),
    ],
)
def test_segments_have_the_sizes_that_pytorch_documents(
    expandable: bool, sizes: tuple[int, ...], reserved: int
) -> None:
    card = CachingAllocator(expandable=expandable)
    for size in sizes:
        card.allocate(size)
    assert card.reserved == reserved


def test_a_large_block_keeps_a_remainder_of_up_to_1_mib() -> None:
    # should_split: remaining > kSmallSize
    card = CachingAllocator()
    card.free(card.allocate(12 * MIB))
    block = card.allocate(11 * MIB)
    assert card.allocated == 12 * MIB
    card.free(block)
    card.allocate(11 * MIB - 512)
    assert card.allocated == 11 * MIB - 512


def test_the_smallest_free_block_that_is_large_enough_is_taken() -> None:
    card = CachingAllocator()
    blocks = [card.allocate(size * MIB) for size in (40, 30, 20, 30)]
    for block in blocks[:3]:
        card.free(block)
    assert card.allocate(25 * MIB)[:2] == blocks[1][:2]


def test_neighbors_become_one_free_block() -> None:
    card = CachingAllocator()
    card.free(card.allocate(30 * MIB))
    parts = [card.allocate(10 * MIB) for _ in range(3)]
    for place in (0, 2, 1):
        card.free(parts[place])
    card.allocate(30 * MIB)
    assert card.reserved == 30 * MIB


def test_free_segments_go_back_before_memory_is_out() -> None:
    # PyTorch's test_max_split_expandable: of 120 MiB three tensors of 40 fit, no fourth one, and
    # after them one of 120, for which the cached segments are released.
    for expandable in (False, True):
        card = CachingAllocator(120 * MIB, expandable)
        blocks = [card.allocate(40 * MIB) for _ in range(3)]
        with pytest.raises(OutOfMemoryError):
            card.allocate(40 * MIB)
        for block in blocks:
            card.free(block)
        card.allocate(120 * MIB)
        assert card.reserved == 120 * MIB


def test_growing_batches_leave_no_gaps_in_an_expandable_segment() -> None:
    # the example of Note [Expandable Segments]: each batch a little larger than the one before
    def grown(expandable: bool) -> int:
        card = CachingAllocator(expandable=expandable)
        for size in range(20, 40, 4):
            for block in [card.allocate(size * MIB) for _ in range(8)]:
                card.free(block)
        return card.reserved

    assert grown(expandable=True) < 8 * 40 * MIB < grown(expandable=False)


def serve(card: CachingAllocator, request: int, living: list[Block]) -> list[Block]:
    """Allocate as many bytes or free a living block, and return those that live then."""
    if request > 0:
        living.append(card.allocate(request))
    elif living:
        card.free(living.pop(request % len(living)))
    return living


@pytest.mark.parametrize("expandable", [False, True])
@given(requests=REQUESTS, limit=st.none() | st.integers(2 * MIB, 200 * MIB))
def test_no_two_blocks_in_use_meet_and_segments_never_exceed_the_limit(
    expandable: bool, requests: list[int], limit: int | None
) -> None:
    card = CachingAllocator(limit, expandable)
    living: list[Block] = []
    for request in requests:
        try:
            serve(card, request, living)
        except OutOfMemoryError:
            assert card.allocated + request > limit - 20 * MIB * (len(living) + 2)
        by_pool = [
            sorted(block[1:] for block in living if block[0] is pool)
            for pool in (card.small, card.large)
        ]
        for blocks in by_pool:
            ends = [start + size for start, size in blocks]
            assert all(end <= start for end, (start, _) in zip(ends, blocks[1:], strict=False))
        used = sum(size for blocks in by_pool for _, size in blocks) * BLOCK
        free = sum(sum(pool.sizes.values()) for pool in (card.small, card.large)) * BLOCK
        assert used == card.allocated
        assert used + free == card.reserved
    assert limit is None or card.peak_reserved <= limit
    for block in living:
        card.free(block)
    card.empty_cache()
    assert card.reserved == card.allocated == 0


@pytest.mark.parametrize("expandable", [False, True])
@given(requests=REQUESTS)
def test_a_replay_gives_what_its_requests_give_one_by_one(
    expandable: bool, requests: list[int]
) -> None:
    card, other = (CachingAllocator(expandable=expandable) for _ in range(2))
    living: dict[int, Block] = {}
    events: list[tuple[int, int]] = []
    for number, request in enumerate(requests, 1):
        if request > 0:
            living[number] = card.allocate(request)
            events.append((number, number))
        elif living:
            died = [*living][request % len(living)]
            card.free(living.pop(died))
            events.append((-died, 0))
    blocks: dict[int, Block] = {}
    other.replay(events, [0, *requests], blocks)
    assert [block[1:] for block in blocks.values()] == [block[1:] for block in living.values()]
    for name in ("allocated", "peak_allocated", "reserved", "peak_reserved"):
        assert getattr(other, name) == getattr(card, name)


@pytest.mark.parametrize("expandable", [False, True])
@example(before=[40 * MIB, -1], requests=[15 * MIB, 26 * MIB], room=None)
@example(before=[40 * MIB, -1], requests=[26 * MIB, 26 * MIB], room=None)
@given(before=REQUESTS, requests=REQUESTS, room=st.none() | st.integers(0, 60 * MIB))
def test_steady_requests_find_the_same_blocks_again_without_a_new_segment(
    expandable: bool, before: list[int], requests: list[int], room: int | None
) -> None:
    card = CachingAllocator(expandable=expandable)

    def play(requests: list[int]) -> tuple[list[list[Block]], list[Block]]:
        living: list[Block] = []
        return [serve(card, request, living)[-1:] for request in requests], living

    play(before)
    card.limit = None if room is None else card.reserved + room
    card.watch()
    with suppress(OutOfMemoryError):
        found, living = play(requests)
        for block in living:
            card.free(block)
        reserved, peak = card.reserved, card.peak_allocated
        if card.is_steady:
            assert play(requests)[0] == found
            assert (card.reserved, card.peak_allocated) == (reserved, peak)
