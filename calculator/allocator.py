"""Byte counting of PyTorch's caching allocators."""

from typing import Final

# every block that the allocator hands out is a multiple of this many bytes (kMinBlockSize)
BLOCK: Final = 512


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
