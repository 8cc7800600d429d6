"""PyTorch's caching allocators in pure Python, to the byte: sizes, segments and best fit.

`CachingAllocator` follows the rules of release 2.13 for one stream with default settings. Not
modeled are blocks that other streams still use (FSDP gathers and reduces on streams of its own),
what NCCL and other libraries take from CUDA directly, and `max_split_size_mb`,
`roundup_power2_divisions` and garbage collection, which are off by default. New segments have
rising addresses, which decides only between free blocks of equal size.

Source: torch (c10/cuda/CUDACachingAllocator.cpp)
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from copy import copy
from math import inf
from typing import Final, Self

# every block that the allocator hands out is a multiple of this many bytes (kMinBlockSize)
BLOCK: Final = 512
# the largest request that goes to the pool of small blocks, and that pool's segments (kSmallSize,
# kSmallBuffer)
SMALL: Final = 1 << 20
SMALL_SEGMENT: Final = 2 << 20
# requests below kMinLargeAlloc get a segment of kLargeBuffer, others one in steps of kRoundLarge
LARGE_SEGMENT: Final = 20 << 20
OWN_SEGMENT: Final = 10 << 20
SEGMENT_STEP: Final = 2 << 20

# a free block as one number, which orders blocks by size and then by address; both in blocks
_SHIFT: Final = 40
_ADDRESS: Final = (1 << _SHIFT) - 1


def round_block(size: int) -> int:
    r"""Bytes that a tensor of `size` bytes takes.

    $$\lceil s / 512 \rceil \cdot 512$$

    >>> round_block(1)
    512

    Source: torch
    """
    return -(-size // BLOCK) * BLOCK


def round_pinned(size: int) -> int:
    """Bytes of pinned RAM that a tensor of `size` bytes takes: a power of two.

    >>> round_pinned(1536)
    2048

    Source: torch (aten/src/ATen/core/CachingHostAllocator.h)
    """
    return 1 << (size - 1).bit_length()


def segment_size(size: int) -> int:
    """Bytes that the allocator asks CUDA for where no free block holds `size` bytes.

    >>> [segment_size(size << 20) >> 20 for size in (1, 9, 10, 11)]
    [2, 20, 10, 12]

    Source: torch (get_allocation_size)
    """
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < OWN_SEGMENT:
        return LARGE_SEGMENT
    return -(-size // SEGMENT_STEP) * SEGMENT_STEP


class OutOfMemoryError(MemoryError):
    """No free block is large enough, and the card has no room for another segment."""


class Pool:
    """Free blocks of one kind, small or large; all addresses and sizes are in blocks of 512 bytes.

    A remainder stays in a block unless it is larger than `least`. `sizes` has the size of each free
    block by its address, `starts` its address by its end, and `segments` their sizes by address.
    `widest` has by requests the largest block that was split for one since `watch`, and `is_steady`
    is true if the same requests would find the same blocks again, and now without new segments.
    """

    def __init__(self, least: int) -> None:
        self.least = least
        self.free: list[int] = []
        self.sizes: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.segments: dict[int, int] = {}
        self.end = 0
        self.widest: dict[int, int] = {}
        self.is_steady = False

    def watch(self) -> None:
        """Note from now on whether requests depend on which segments are there already.

        A new segment has the highest address. It is chosen before it was new only if an earlier
        request would fit it, and took a larger block.
        """
        self.widest.clear()
        self.is_steady = True

    def copied(self) -> Self:
        """The same blocks, which go on apart from these."""
        made = copy(self)
        vars(made).update({name: copy(value) for name, value in vars(self).items()})
        return made

    def put(self, start: int, size: int) -> None:
        """A block is free, in one with its free neighbors."""
        free, sizes, starts = self.free, self.sizes, self.starts
        end = start + size
        after = sizes.pop(end, 0)
        if after:
            del free[bisect_left(free, after << _SHIFT | end)]
            end += after
        before = starts.pop(start, start)
        if before != start:
            del free[bisect_left(free, start - before << _SHIFT | before)]
            start = before
        sizes[start] = size = end - start
        starts[end] = start
        insort(free, size << _SHIFT | start)

    def drop(self, start: int) -> None:
        """The free block at an address is not free any more."""
        size = self.sizes.pop(start)
        del self.starts[start + size]
        del self.free[bisect_left(self.free, size << _SHIFT | start)]

    def take(self, size: int, place: int | None = None) -> "Block | None":
        """A free block of so many, without what is split off; None if none is large enough.

        It is the one at a place in their order, else the smallest that is large enough.
        """
        free = self.free
        if place is None:
            place = bisect_left(free, size << _SHIFT)
            if place == len(free):
                return None
        key = free.pop(place)
        start, found = key & _ADDRESS, key >> _SHIFT
        del self.sizes[start]
        rest = found - size
        if rest and found > self.widest.get(size, 0):
            self.widest[size] = found
        if rest <= self.least:
            del self.starts[start + found]
            return self, start, found
        left = start + size
        self.sizes[left] = rest
        self.starts[start + found] = left
        insort(free, rest << _SHIFT | left)
        return self, start, size

    def missing(self, size: int) -> int:
        """Blocks that CUDA has to give for a request that no free block holds."""
        return segment_size(size * BLOCK) // BLOCK

    def grow(self, size: int) -> None:
        """A new segment, which has a free block of so many."""
        # no two segments touch, since blocks of different ones are never joined
        start = self.end + 1
        self.segments[start] = made = self.missing(size)
        self.end = start + made
        if self.is_steady:
            self.is_steady = not any(one <= made < most for one, most in self.widest.items())
        self.put(start, made)

    def shrink(self) -> int:
        """Return the segments without a block in use; blocks that CUDA gets back."""
        self.is_steady = False
        whole = [start for start, size in self.sizes.items() if self.segments.get(start) == size]
        for start in whole:
            self.drop(start)
        return sum(self.segments.pop(start) for start in whole)


Block = tuple[Pool, int, int]


class ExpandablePool(Pool):
    """One segment that grows by pages: `expandable_segments:True`.

    Remainders of any size are split off. `holes` are unmapped pages between mapped ones, from and
    to, left where free pages were returned.
    """

    def __init__(self, page: int) -> None:
        super().__init__(0)
        self.page = page
        self.holes: dict[int, int] = {}

    def take(self, size: int, place: int | None = None) -> Block | None:
        """The free block with the least room to grow, of those that are large enough."""
        if place is None:
            place = bisect_left(self.free, size << _SHIFT)
        while place + 1 < len(self.free) and self._room(place + 1) < self._room(place):
            place += 1
        return super().take(size, place) if place < len(self.free) else None

    def _room(self, place: int) -> float:
        key = self.free[place]
        end = (key & _ADDRESS) + (key >> _SHIFT)
        if end == self.end:
            return inf
        return (key >> _SHIFT) + self.holes.get(end, end) - end

    def missing(self, size: int) -> int:
        """Blocks in the pages to map for a request that no free block holds."""
        return sum(end - start for start, end in self._pages(size))

    def _pages(self, size: int) -> list[tuple[int, int]]:
        """The unmapped pages, from and to, that continue the first free blocks with enough room."""
        for hole in (*sorted(self.holes), self.end):
            at = start = self.starts.get(hole, hole)
            found: list[tuple[int, int]] = []
            while at - start < size and (at in self.sizes or at in self.holes or at == self.end):
                if at in self.sizes:
                    at += self.sizes[at]
                    continue
                wanted = -(-(start + size - at) // self.page) * self.page
                end = min(self.holes.get(at, at + wanted), at + wanted)
                found.append((at, end))
                at = end
            if at - start >= size:
                return found
        raise AssertionError("the end of the segment has room")

    def grow(self, size: int) -> None:
        """Newly mapped pages, which make a free block of so many with the one before them."""
        self.is_steady = False
        for start, end in self._pages(size):
            if start == self.end:
                self.end = end
            elif (hole := self.holes.pop(start)) > end:
                self.holes[end] = hole
            self.put(start, end - start)

    def shrink(self) -> int:
        """Unmap the pages without a block in use; blocks that CUDA gets back."""
        self.is_steady, unmapped = False, 0
        for start, size in [*self.sizes.items()]:
            first = -(-start // self.page) * self.page
            last = (start + size) // self.page * self.page
            if first >= last:
                continue
            self.drop(start)
            unmapped += last - first
            for left, right in ((start, first), (last, start + size)):
                if left < right:
                    self.put(left, right - left)
            self._unmap(first, last)
        return unmapped

    def _unmap(self, first: int, last: int) -> None:
        last = self.holes.pop(last, last)
        before = next((start for start, end in self.holes.items() if end == first), first)
        self.holes.pop(before, None)
        if last == self.end:
            self.end = before
        else:
            self.holes[before] = last


class CachingAllocator:
    """The blocks of one GPU, of which at most `limit` bytes are there for PyTorch.

    Bytes: `allocated` are those of blocks in use, and `reserved` those of segments; `peak_...` the
    most so far (`max_memory_allocated`, `max_memory_reserved`). A block may be larger than what was
    asked for: in the pool of large ones up to 1 MiB is not split off.
    """

    def __init__(self, limit: int | None = None, expandable: bool = False) -> None:
        self.limit = limit
        self.small, self.large = (
            (ExpandablePool(SMALL_SEGMENT // BLOCK), ExpandablePool(LARGE_SEGMENT // BLOCK))
            if expandable
            else (Pool(0), Pool(SMALL // BLOCK))
        )
        self.allocated = self.peak_allocated = 0
        self.reserved = self.peak_reserved = 0

    def copied(self, blocks: Iterable[Block]) -> "tuple[CachingAllocator, list[Block]]":
        """An allocator that goes on apart from this one, and its blocks in the place of these."""
        made = copy(self)
        made.small, made.large = self.small.copied(), self.large.copied()
        pools = {self.small: made.small, self.large: made.large}
        return made, [(pools[pool], start, size) for pool, start, size in blocks]

    def allocate(self, size: int) -> Block:
        """A block of at least `size` bytes.

        Raises:
            OutOfMemoryError: if the limit leaves no room for it.
        """
        pool = self.small if size <= SMALL else self.large
        blocks = -(-size // BLOCK) or 1
        block = pool.take(blocks) or self._more(pool, blocks)
        self.allocated += block[2] * BLOCK
        if self.allocated > self.peak_allocated:
            self.peak_allocated = self.allocated
        return block

    def free(self, block: Block) -> None:
        """Give a block back."""
        pool, start, size = block
        self.allocated -= size * BLOCK
        pool.put(start, size)

    def replay(
        self, events: Iterable[tuple[int, int]], sizes: Sequence[int], blocks: dict[int, Block]
    ) -> None:
        """Births and deaths in order, as `allocate` and `free`, without a call for each.

        Args:
            events: a birth is a number and the place of its bytes in `sizes`; a death is the
                number's negative and 0. Nothing is asked for what has no bytes.
            sizes: bytes.
            blocks: the living by number; changes.

        Raises:
            OutOfMemoryError: as `allocate`.
        """
        pools = [self.small if size <= SMALL else self.large for size in sizes]
        takes = [pool.take for pool in pools]
        counts = [-(-size // BLOCK) for size in sizes]
        allocated, peak = self.allocated // BLOCK, self.peak_allocated // BLOCK
        for number, place in events:
            if place:
                if count := counts[place]:
                    block = blocks[number] = takes[place](count) or self._more(pools[place], count)
                    allocated += block[2]
                    if allocated > peak:
                        peak = allocated
            elif freed := blocks.pop(-number, None):
                pool, start, size = freed
                allocated -= size
                pool.put(start, size)
        self.allocated, self.peak_allocated = allocated * BLOCK, peak * BLOCK

    def watch(self) -> None:
        """Note from now on whether requests depend on which segments are there already."""
        self.small.watch()
        self.large.watch()

    @property
    def is_steady(self) -> bool:
        """True if requests since `watch` would go alike again, after each block of theirs is free.

        They would find the same blocks, and need no new segment.
        """
        return self.small.is_steady and self.large.is_steady

    def _more(self, pool: Pool, blocks: int) -> Block:
        """A block that CUDA gives, to which free segments go back if there is no room."""
        if self._is_beyond(pool.missing(blocks)):
            self.empty_cache()
            if self._is_beyond(pool.missing(blocks)):
                held = f"beside {self.reserved} reserved bytes, of {self.limit}"
                raise OutOfMemoryError(f"no room for {blocks * BLOCK} bytes {held}")
        self.reserved += pool.missing(blocks) * BLOCK
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        pool.grow(blocks)
        block = pool.take(blocks)
        assert block is not None  # the new one
        return block

    def _is_beyond(self, blocks: int) -> bool:
        return self.limit is not None and self.reserved + blocks * BLOCK > self.limit

    def empty_cache(self) -> None:
        """Return what holds no block in use (`torch.cuda.empty_cache`)."""
        self.reserved -= (self.small.shrink() + self.large.shrink()) * BLOCK
