"""A trace written by hand, measured by arithmetic that can be done in one's head."""

import pytest

from calculator.ledger import Moment, Part
from calculator.timeline import Peak, measure, size_bytes
from calculator.trace import Chunk, Size, Trace, parse_size

# sizes of 1, 2 and 4 blocks of 512 bytes at n = 128
SIZES = (parse_size("n", 4), parse_size("2*n", 4), parse_size("4*n", 4))
SYMBOLS = {"n": 128}
STATIC = (100, 20, 3, 0, 0)


def chunk(moment: Moment, *events: int, repeats: tuple[int, int, int] | None = None) -> Chunk:
    """Events that all belong to the temporaries."""
    part = Part.TEMPORARIES
    changes = [((), ()) for _ in Part]
    changes[part] = (tuple(range(1, len(events) + 1)), events)  # type: ignore[call-overload]
    net = tuple((int(part), abs(event), 1 if event > 0 else -1) for event in events)
    origins = tuple(range(1, len(events) + 1))
    return Chunk(moment, events, origins, tuple(changes), net, repeats)


def totals(left_out: tuple[int, ...], *chunks: Chunk) -> dict[Moment, int]:
    """Peaks in blocks, without what is static."""
    peaks = measure(Trace(SIZES, chunks), SYMBOLS, left_out, STATIC)
    return {moment: (peak.total - 123) // 512 for moment, peak in peaks.items()}


@pytest.mark.parametrize(
    ("elements", "item", "expected"),
    [("n", 4, 512), ("n", 1, 512), ("3*n", 4, 1536), ("n*n", 2, 32_768), ("1", 8, 512)],
)
def test_a_size_takes_whole_blocks(elements: str, item: int, expected: int) -> None:
    assert size_bytes(parse_size(elements, item), SYMBOLS) == expected


def test_a_size_of_a_run_counts_for_each_left_out_layer() -> None:
    assert size_bytes(Size(1, ("n",), 4, run=1), SYMBOLS, (7, 3)) == 3 * 512


def test_a_total_is_the_sum_of_its_parts() -> None:
    assert Peak(Moment.LOSS, (1, 20, 300, 4000, 50_000)).total == 54_321


def test_a_peak_is_the_most_that_lives_at_once() -> None:
    assert totals((), chunk(Moment.FORWARD, 1, 3, -3, 2)) == {Moment.FORWARD: 5}


def test_what_is_left_of_a_moment_lives_in_the_next() -> None:
    found = totals((), chunk(Moment.FORWARD, 3, 1, -1), chunk(Moment.LOSS, 2, -2, -3))
    assert found == {Moment.FORWARD: 5, Moment.LOSS: 6}


def test_a_moment_of_several_chunks_has_the_peak_of_the_highest() -> None:
    found = totals((), chunk(Moment.FORWARD, 1), chunk(Moment.FORWARD, 3), chunk(Moment.LOSS, -3))
    assert found == {Moment.FORWARD: 5, Moment.LOSS: 5}


@pytest.mark.parametrize("left_out", [0, 1, 40])
def test_left_out_layers_add_what_one_of_them_keeps(left_out: int) -> None:
    layer = chunk(Moment.FORWARD, 1, 2, -2, repeats=(0, 1, 0))
    found = totals((left_out,), layer, chunk(Moment.LOSS, 3))
    assert found[Moment.LOSS] == 1 + left_out + 4


@pytest.mark.parametrize("left_out", [0, 1, 40])
def test_the_peaks_parts_count_left_out_layers_too(left_out: int) -> None:
    chunks = (chunk(Moment.FORWARD, 1, 2, -2, repeats=(0, 1, 0)), chunk(Moment.LOSS, 3))
    peaks = measure(Trace(SIZES, chunks), SYMBOLS, (left_out,), STATIC)
    assert peaks[Moment.LOSS].parts == (100, 20, 3, 0, 512 * (1 + left_out + 4))
