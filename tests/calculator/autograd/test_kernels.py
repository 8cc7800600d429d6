"""The attention kernel that PyTorch picks: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp."""

import pytest

from calculator.autograd.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from calculator.autograd.mode import Attention, Mode
from calculator.autograd.scratch import Tile, tile_of

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
    ("capability", "widest", "dropped", "tile"),
    [
        # kernels/cutlassB.h, in the order in which they are tried
        (A100, 64, False, Tile(64, 64, False)),
        (A100, 128, False, Tile(128, 128, False)),
        (A100, 256, False, Tile(128, 64, True)),
        (T4, 128, False, Tile(128, 64, False)),
        (RTX_3090, 96, False, Tile(128, 64, False)),  # a kernel of its own
        (RTX_3090, 96, True, Tile(64, 64, True)),  # without dropout
        (RTX_3090, 128, False, Tile(64, 64, True)),
    ],
)
def test_the_efficient_kernels_tiles_fit_the_cards_shared_memory(
    capability: tuple[int, int], widest: int, dropped: bool, tile: Tile
) -> None:
    assert tile_of(widest, half=True, dropped=dropped, capability=capability) == tile
