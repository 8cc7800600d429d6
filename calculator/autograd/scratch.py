"""Bytes that CUDA's kernels allocate beside their outputs and free before they return.

Source: torch (aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu, Indexing.cu,
transformers/cuda/attention_backward.cu, flash_attn/flash_api.cpp,
mem_eff_attention/kernel_backward.h and kernels/cutlassB.h).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Final, NamedTuple

from calculator.autograd.sizes import Size, derived

# an embedding's backward sorts its indices where there are more
SORTED_ABOVE: Final = 3072
# an A100's multiprocessors, by which an embedding's backward picks its way for small tables
MULTIPROCESSORS: Final = 108
# the caching allocator's blocks
BLOCK: Final = 512


def round_block(size: int) -> int:
    """Bytes that the allocator gives for a request."""
    return -(-size // BLOCK) * BLOCK


@cache
def embedding_scratch(indices: Size, rows: Size, width: Size, half: bool) -> Size:
    """Backward of an embedding: sorted indices, and sums of ten rows each in 32 bits.

    Tables of few rows add up the rows in place, those in 16 bits (`half`) in a copy in 32 bits.
    """
    name = f"(sorting {indices} of {rows} x {width} {half})"
    rule = _half_embedding if half else _full_embedding
    return derived(name, rule, indices, rows, width)


def _full_embedding(indices: int, rows: int, width: int) -> int:
    return _embedding_bytes(indices, rows, width, accumulator=0)


def _half_embedding(indices: int, rows: int, width: int) -> int:
    return _embedding_bytes(indices, rows, width, accumulator=round_block(4 * rows * width))


def _embedding_bytes(indices: int, rows: int, width: int, accumulator: int) -> int:
    if indices <= SORTED_ABOVE:
        return 0
    distinct = min(indices, rows)
    sums = indices // 10 + distinct
    lists = 3 * round_block(8 * indices) + 2 * round_block(8)
    lists += 2 * round_block(8 * distinct) + round_block(8 * sums)
    threads = -(-width // 32) * 32
    blocks = -(-distinct * threads // min(threads, 1024))
    if blocks < 4 * MULTIPROCESSORS and sums > 4 * blocks:
        return lists + round_block(8 * sums) + accumulator
    return lists + round_block(4 * sums * width)


@cache
def flash_width(width: Size) -> Size:
    """Width of a head in flash attention's kernels: up to 128 a multiple of 32, above it of 64."""
    return derived(f"({width} in the kernel)", _kernel_width, width)


def _kernel_width(width: int) -> int:
    multiple = 32 if width <= 128 else 64
    return -(-width // multiple) * multiple


@cache
def rows_scratch(places: Size) -> Size:
    """Backward of rows picked by an index: the places, in order, and both once more, sorted."""
    return derived(f"(adding at {places})", _rows_bytes, places)


def _rows_bytes(places: int) -> int:
    return 4 * round_block(8 * places)


class Tile(NamedTuple):
    """Queries and keys of the efficient kernel's tiles, and whether sums of keys are in memory."""

    rows: int
    columns: int
    sums_keys: bool


def tile_of(widest: int, half: bool, dropped: bool, capability: tuple[int, int]) -> Tile:
    """The first kernel in cutlassB.h that takes heads of this width and fits in shared memory.

    8.6, 8.9 and 12.0 have 99 KiB of it, too little for tiles of 128 by 128, and 7.5 has 64.
    """
    if widest <= 64 or not (half or capability >= (8, 0)):
        return Tile(64, 64, False)
    if widest > 128:
        return Tile(128, 64, half)
    if not half or capability < (8, 0):
        return Tile(128, 64, False)
    if capability in ((8, 0), (9, 0)) or capability[0] == 10:
        return Tile(128, 128, False)
    if widest <= 96 and not dropped and capability in ((8, 6), (8, 9)):
        return Tile(128, 64, False)
    return Tile(64, 64, True)


def like_kernels(capability: tuple[int, int]) -> tuple[int, int]:
    """The lowest capability whose cards run the same kernels, with the same tiles.

    >>> [like_kernels(one) for one in ((7, 5), (8, 9), (9, 0), (10, 3), (12, 1))]
    [(0, 0), (8, 6), (8, 0), (8, 0), (12, 0)]
    """
    if capability < (8, 0):
        return (0, 0)
    if capability in ((8, 6), (8, 9)):
        return (8, 6)
    return (8, 0) if capability in ((8, 0), (9, 0)) or capability[0] == 10 else (12, 0)


@cache
def efficient_scratch(
    batch: Size,
    heads: Size,
    queries: Size,
    widths: tuple[Size, Size],
    keys: Size,
    half: bool,
    dropped: bool,
    capability: tuple[int, int],
) -> Size:
    """Backward of the efficient kernel: one number per row and the tiles of the queries' gradient.

    In 32 bits the product of the output and its gradient, and its sums, come first. `widths` are
    those of queries and of values.
    """
    name = f"(tiles {batch} {heads} {queries} {widths} {keys} {half} {dropped} {capability})"
    tile = partial(tile_of, half=half, dropped=dropped, capability=capability)
    rule = partial(_half_bytes if half else _full_bytes, tile)
    return derived(name, rule, batch, heads, queries, *widths, keys)


@cache
def efficient_output_scratch(
    batch: Size, heads: Size, queries: Size, widths: tuple[Size, Size]
) -> Size:
    """Forward of the efficient kernel in 16 bits: wide heads add up their output in 32 bits."""
    name = f"(wide output {batch} {heads} {queries} {widths})"
    return derived(name, _wide_output_bytes, batch, heads, queries, *widths)


def _wide_output_bytes(batch: int, heads: int, queries: int, width: int, values: int) -> int:
    return 4 * batch * heads * queries * values if max(width, values) > 128 else 0


def _half_bytes(
    tile: Callable[[int], Tile],
    batch: int,
    heads: int,
    queries: int,
    width: int,
    values: int,
    keys: int,
) -> int:
    rows, columns, sums_keys = tile(max(width, values))
    summed = 0
    if sums_keys:  # the gradients of keys and values are added up too
        many = batch * heads >= 256 and keys <= 2 * columns
        splits = 1 if many else -(-keys // columns)
        splits = max(1, min(splits, 200 // (batch * heads)))
        summed = splits * columns * rows * (-(-width // rows) + -(-values // rows))
    elements = summed + _tiles(queries, width, rows, columns)
    return round_block(4 * batch * heads * queries) + round_block(4 * batch * heads * elements)


def _full_bytes(
    tile: Callable[[int], Tile],
    batch: int,
    heads: int,
    queries: int,
    width: int,
    values: int,
    keys: int,
) -> int:
    del keys
    rows, columns, _ = tile(max(width, values))
    numbers = round_block(4 * batch * heads * queries)
    product = round_block(4 * batch * heads * queries * values)
    tiles = round_block(4 * batch * heads * _tiles(queries, width, rows, columns))
    return max(product + 2 * numbers, numbers + tiles)


def _tiles(queries: int, width: int, rows: int, columns: int) -> int:
    """Numbers in tiles of queries by keys, each with 16 bytes more."""
    return -(-queries // rows) * -(-width // columns) * (4 + rows * columns)
