"""training/sparse/codec and layout: updates in few bits, without gaps, and bytes that are none."""

import math
import struct

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from calculator.errors import InputError
from training.access.envelope import FileError
from training.model.build import config_of
from training.model.transformer import TextToImageTransformer
from training.run.recipes import PAPER
from training.sparse.codec import decode, encode
from training.sparse.layout import BLOCK, KEPT, Layout, kept_of, pack, packed_bytes, unpack

ROUNDING = 2.0**-8  # of a number to bfloat16's 8 significant bits, relative, at most
SIZES = st.lists(st.integers(1, 2 * BLOCK + 100), min_size=1, max_size=4).map(tuple)
SMALL = Layout((BLOCK, 100))  # a whole block, and one of which two elements are kept


def draw(layout: Layout, seed: int, spread: float) -> torch.Tensor:
    """A vector whose elements differ by orders of magnitude, the more the larger `spread` is."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (spread * torch.randn(layout.elements, generator=generator)).exp()
    return sizes * torch.randn(layout.elements, generator=generator)


@pytest.fixture
def content() -> bytes:
    return encode(draw(SMALL, 0, 1.0), SMALL)


def with_scales(content: bytes, low: float, high: float) -> bytes:
    """The scales of the first block in another's place, as bfloat16: the upper half of a float."""
    scales = b"".join(struct.pack("<f", value)[2:] for value in (low, high))
    return scales + content[len(scales) :]


def test_the_papers_model_takes_less_than_four_megabytes_and_a_quarter_of_a_bit() -> None:
    with torch.device("meta"):
        model = TextToImageTransformer(config_of(PAPER))
    layout = Layout.of(model.parameters())
    assert layout.elements == 125_894_244  # the model's docstring has the arithmetic
    assert layout.update_bytes < 4e6
    assert 8 * layout.update_bytes / layout.elements <= 0.25


@given(SIZES, st.integers(0, 2**32), st.floats(0, 3))
@example((1,), 0, 0.0)
def test_each_blocks_largest_are_kept_and_less_is_left(
    sizes: tuple[int, ...], seed: int, spread: float
) -> None:
    layout = Layout(sizes)
    vector = draw(layout, seed, spread)
    decoded = decode(encode(vector, layout), layout).dense(layout.elements)
    lengths = layout.lengths.tolist()
    for given_block, block in zip(vector.split(lengths), decoded.split(lengths), strict=True):
        assert block.count_nonzero() == kept_of(len(block))
        is_kept = block != 0
        smallest_kept = given_block[is_kept].abs().min()
        assert (given_block[~is_kept].abs() <= smallest_kept).all()
        assert torch.equal(block[is_kept].sign(), given_block[is_kept].sign())
        # no further off than the kept elements are apart, and the rounding of a magnitude
        largest = given_block.abs().max()
        apart = largest - smallest_kept + ROUNDING * largest
        assert ((block - given_block)[is_kept].abs() <= apart * (1 + 1e-6)).all()

        # Taking the mean of n magnitudes off each leaves the sum of squares less n mean^2, which
        # is at least sum^2 / n, which is at least the squares' sum / n. The kept k of m elements
        # hold at least k/m of all squares: 1/m of them is gone, but for the rounding of the
        # magnitudes.
        before = given_block.double().square().sum()
        left = (given_block.double() - block.double()).square().sum()
        gone = (1 - ROUNDING**2 - 1e-6) / len(block)
        assert left <= (1 - gone) * before


@given(SIZES, st.integers(0, 2**32))
def test_decoding_gives_the_same_bits_and_norm_again(sizes: tuple[int, ...], seed: int) -> None:
    layout = Layout(sizes)
    content = encode(draw(layout, seed, 1.0), layout)
    assert len(content) == layout.update_bytes
    first, second = decode(content, layout), decode(content, layout)
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.places, second.places)
    assert first.norm == second.norm
    dense = first.dense(layout.elements)
    assert first.norm == pytest.approx(dense.double().norm().item(), rel=1e-12)
    assert len(first.places.unique()) == layout.sent


def test_elements_of_equal_magnitude_arrive_exactly_and_the_largest_do_not_overflow() -> None:
    layout = Layout((BLOCK,))
    vector = torch.zeros(BLOCK)
    vector[:: BLOCK // KEPT] = torch.tensor([0.5, -0.5]).repeat(KEPT // 2)
    assert torch.equal(decode(encode(vector, layout), layout).dense(BLOCK), vector)
    largest = torch.full((BLOCK,), torch.finfo(torch.float32).max)
    update = decode(encode(largest, layout), layout)
    assert update.values.isfinite().all()
    assert math.isfinite(update.norm)


@pytest.mark.parametrize(
    ("vector", "words"),
    [(torch.tensor([*[0.0] * 7, bad, *[0.0] * (SMALL.elements - 8)]), "finite")
     for bad in (math.nan, math.inf, -math.inf)]
    + [(torch.zeros(shape), "vector") for shape in ((SMALL.elements + 1,), (1, SMALL.elements))],
)  # fmt: skip
def test_only_finite_vectors_of_the_layout_are_encoded(vector: torch.Tensor, words: str) -> None:
    with pytest.raises(InputError, match=words):
        encode(vector, SMALL)


@pytest.mark.parametrize("sizes", [(), (4, 0)])
def test_a_layout_has_tensors_and_none_is_empty(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="sizes"):
        Layout(sizes)


def test_bytes_of_another_length_are_refused(content: bytes) -> None:
    for other in (b"", content[:-1], content + b"\0", content * 2):
        with pytest.raises(FileError, match=f"{len(other):,} bytes"):
            decode(other, SMALL)


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (1.0, math.inf, "not finite"),
        (math.nan, 1.0, "not finite"),
        (-1.0, 1.0, "negative"),
        (-0.0, 1.0, "negative"),
        (2.0, 1.0, "above the higher"),
    ],
)
def test_invalid_scales_are_refused(content: bytes, low: float, high: float, reason: str) -> None:
    decode(with_scales(content, 1.0, 2.0), SMALL)
    with pytest.raises(FileError, match=reason):
        decode(with_scales(content, low, high), SMALL)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (99, 100, "out of its block"),
        (0, 4095, "out of its block"),
        (5, 5, "repeated"),
        (6, 5, "out of order"),
    ],
)
def test_places_that_no_encoder_writes_are_refused(first: int, second: int, reason: str) -> None:
    layout = Layout((100,))  # a single block, of which two elements are kept
    content = encode(torch.ones(100), layout)[:-3]
    decode(content + (98 | 99 << 12).to_bytes(3, "little"), layout)
    with pytest.raises(FileError, match=reason):
        decode(content + (first | second << 12).to_bytes(3, "little"), layout)


def test_an_update_that_is_too_long_is_refused(content: bytes) -> None:
    norm = decode(content, SMALL).norm
    decode(content, SMALL, largest_norm=norm)
    with pytest.raises(FileError, match="norm"):
        decode(content, SMALL, largest_norm=math.nextafter(norm, 0))


@given(st.binary(min_size=SMALL.update_bytes, max_size=SMALL.update_bytes))
def test_any_bytes_are_refused_or_decoded_to_finite_values(content: bytes) -> None:
    try:
        update = decode(content, SMALL, largest_norm=1.0)
    except FileError:
        return
    assert update.values.isfinite().all()
    assert update.norm <= 1.0
    assert update.places.max() < SMALL.elements


@given(st.integers(0, SMALL.update_bytes - 1), st.integers(0, 7))
def test_one_turned_bit_is_refused_or_changes_the_update(place: int, bit: int) -> None:
    content = encode(draw(SMALL, 0, 1.0), SMALL)
    spoilt = bytearray(content)
    spoilt[place] ^= 1 << bit
    try:
        update = decode(bytes(spoilt), SMALL)
    except FileError:
        return
    honest = decode(content, SMALL).dense(SMALL.elements)
    assert not torch.equal(update.dense(SMALL.elements), honest)


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
