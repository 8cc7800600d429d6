"""The attention kernel that PyTorch picks: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp."""

from itertools import product

import pytest

from calculator.autograd.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from calculator.autograd.mode import Attention, Mode
from calculator.autograd.scratch import (
    Tile,
    efficient_output_scratch,
    efficient_scratch,
    embedding_scratch,
    flash_width,
    like_kernels,
    rows_scratch,
    tile_of,
)
from calculator.autograd.sizes import Size, constant, number_of
from calculator.cards import CARDS
from calculator.catalog import find_model
from calculator.notes import notes_for
from calculator.plan import Plan
from calculator.resolution import resolve

T4, A100, RTX_3090 = (7, 5), (8, 0), (8, 6)


@pytest.mark.parametrize(
    ("capability", "dtype", "masked", "grouped", "kernel"),
    [
        (A100, BFLOAT16, False, True, Attention.FLASH),  # flash shares heads of keys
        (A100, FLOAT16, True, False, Attention.EFFICIENT),  # and takes no mask
        (A100, FLOAT32, False, False, Attention.EFFICIENT),  # only 16 bits
        (A100, FLOAT32, False, True, Attention.MATH),  # the efficient kernel shares none
        (T4, FLOAT16, False, False, Attention.EFFICIENT),  # flash starts at sm80
        (T4, FLOAT16, False, True, Attention.MATH),
        (T4, BFLOAT16, False, False, Attention.MATH),  # no bfloat16 below sm80
    ],
)
def test_a_card_has_its_kernels(
    capability: tuple[int, int], dtype: DType, masked: bool, grouped: bool, kernel: Attention
) -> None:
    mode = Mode(weights=dtype, capability=capability)
    assert mode.kernel(masked, grouped) is kernel


@pytest.mark.parametrize(("capability", "fits"), [(T4, True), (A100, False)])
def test_a_t4_takes_heads_of_any_width_in_32_bits(capability: tuple[int, int], fits: bool) -> None:
    # minimum_gemm_alignment: 4 elements from sm80 on, one before it without tensor cores
    assert Mode(odd_heads=True, capability=capability).heads_fit is fits


@pytest.mark.parametrize(
    ("capability", "widest", "half", "dropped", "tile"),
    [
        # kernels/cutlassB.h, in the order in which they are tried
        (A100, 64, True, False, Tile(64, 64, False)),
        (A100, 128, True, False, Tile(128, 128, False)),
        (A100, 256, True, False, Tile(128, 64, True)),
        (A100, 256, False, False, Tile(128, 64, False)),  # sums of keys are in registers
        (T4, 128, True, False, Tile(128, 64, False)),
        (RTX_3090, 96, True, False, Tile(128, 64, False)),  # a kernel of its own
        (RTX_3090, 96, True, True, Tile(64, 64, True)),  # without dropout
        (RTX_3090, 97, True, False, Tile(64, 64, True)),
        (RTX_3090, 128, True, False, Tile(64, 64, True)),
    ],
)
def test_the_efficient_kernels_tiles_fit_the_cards_shared_memory(
    capability: tuple[int, int], widest: int, half: bool, dropped: bool, tile: Tile
) -> None:
    assert tile_of(widest, half, dropped, capability) == tile


def of(*numbers: int) -> list[Size]:
    return [constant(number) for number in numbers]


def efficient(queries: int, width: int, half: bool) -> Size:
    """Scratch memory of the efficient backward, for 2 sequences of 3 heads on an A100."""
    two, three, many, wide = of(2, 3, queries, width)
    return efficient_scratch(two, three, many, (wide, wide), many, half, False, A100)


def wide_outputs(width: int) -> Size:
    two, three, many, wide = of(2, 3, 200, width)
    return efficient_output_scratch(two, three, many, (wide, wide))


# Embedding.cu: 4,000 indices and the two that sort them; two counts; the first place and the number
# of each row; the place of each sum of ten
LISTS = 3 * 32256 + 2 * 512


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # embedding_dense_backward_cuda sorts more than 3,072 indices
        (embedding_scratch(*of(3072, 50257, 768), half=False), 0),
        (embedding_scratch(*of(3073, 200, 8), half=False), 75264 + 1024 + 4096 + 4096 + 16384),
        # blocks of 512 bytes: 600 sums of 8 numbers; 500, added in place; in 32 bits first
        (embedding_scratch(*of(4000, 200, 8), half=False), LISTS + 2 * 2048 + 5120 + 19456),
        (embedding_scratch(*of(4000, 100, 8), half=False), LISTS + 2 * 1024 + 2 * 4096),
        (embedding_scratch(*of(4000, 100, 8), half=True), LISTS + 2 * 1024 + 2 * 4096 + 3584),
        # attention_backward.cu, in blocks of 512 bytes. In 32 bits, the output times its gradient
        # (6 x 256 x 64 numbers) and its sums twice, or the sums and 4 tiles of 64 x 64 for each
        # head, with 16 bytes each: whichever is more.
        (efficient(256, 64, half=False), 6 * 256 * 64 * 4 + 2 * 6 * 256 * 4),
        (efficient(200, 64, half=False), 5120 + 393728),
        # in 16 bits, the sums and the tiles alone; of 128 x 128 for heads of 128
        (efficient(200, 64, half=True), 5120 + 393728),
        (efficient(200, 128, half=True), 5120 + 6 * 2 * (128 * 128 * 4 + 16) + 320),
        # 128 x 64 above it: two rows of four; and the gradients of keys and values are summed up,
        # in 4 parts of 64 keys, by 128 numbers of their width
        (
            efficient(200, 256, half=True),
            5120 + 6 * 4 * (2 * 4 * (4 + 128 * 64) + 4 * 64 * 128 * 4) + 256,
        ),
        # wide outputs are added up in 32 bits
        (wide_outputs(128), 0),
        (wide_outputs(129), 2 * 3 * 200 * 129 * 4),
        # Indexing.cu, index_put_with_sort_kernel: linear_index, sorted_indices, range, orig_indices
        (rows_scratch(constant(100)), 4 * 1024),
    ],
)
def test_a_kernel_takes_the_scratch_memory_of_its_code(made: Size, expected: int) -> None:
    assert number_of(made, {}) == expected


@pytest.mark.parametrize(
    ("width", "kernel"),
    [(32, 32), (33, 64), (96, 96), (97, 128), (128, 128), (129, 192), (193, 256)],
)
def test_flash_attention_rounds_up_the_width_of_heads(width: int, kernel: int) -> None:
    # flash_api.cpp, head_size_rounded: a multiple of 32 up to 128, and of 64 above it
    assert number_of(flash_width(constant(width)), {}) == kernel


@pytest.mark.parametrize(
    "capability", sorted({card.capability for card in CARDS.values()} - {None})
)
def test_cards_that_share_a_simulation_have_the_same_kernels(capability: tuple[int, int]) -> None:
    like = like_kernels(capability)
    for widest, half, dropped in product((64, 96, 128, 256), (False, True), (False, True)):
        assert tile_of(widest, half, dropped, like) == tile_of(widest, half, dropped, capability)
    for dtype, odd, masked, grouped in product(
        (BFLOAT16, FLOAT16, FLOAT32), (False, True), (False, True), (False, True)
    ):
        own, other = (
            Mode(weights=dtype, odd_heads=odd, capability=one) for one in (capability, like)
        )
        assert own.kernel(masked, grouped) is other.kernel(masked, grouped)


@pytest.mark.parametrize(
    ("model", "card", "falls"),
    [
        ("Qwen/Qwen2.5-0.5B", "t4", True),  # 14 heads of queries share 2 of keys
        ("Qwen/Qwen2.5-0.5B", "a100-80", False),
        ("gpt2-s", "t4", False),  # as many heads of keys
    ],
)
def test_a_note_says_where_sdpa_falls_to_math_on_older_cards(
    model: str, card: str, falls: bool
) -> None:
    plan = resolve(find_model(model), Plan(batch_size=1, sequence_length=64).on(CARDS[card]))
    notes = notes_for(find_model(model), plan)
    assert any("falls back to its math kernel" in note for note in notes) is falls
