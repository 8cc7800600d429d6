"""A trace written by hand, measured by arithmetic that can be done in one's head."""

import pytest

from calculator.autograd.dtypes import BOOL, FLOAT16, FLOAT32, INT64, DType
from calculator.autograd.sizes import ONE, Size, size
from calculator.parts import Part, Phase
from calculator.peaks.chunks import Bytes, Chunk, Trace
from calculator.peaks.timeline import Peak, measure

# sizes of 1, 2 and 4 blocks of 512 bytes at n = 128
N = size("n")
SIZES = (Bytes(N, FLOAT32), Bytes(2 * N, FLOAT32), Bytes(4 * N, FLOAT32))
NUMBERS = {"n": 128}
STATIC = (100, 20, 3, 0, 0)


def chunk(phase: Phase, *events: int, repeats: tuple[int, int] | None = None) -> Chunk:
    """Events that all belong to the temporaries."""
    part = Part.TEMPORARIES
    changes = [((), ()) for _ in Part]
    changes[part] = (tuple(range(1, len(events) + 1)), events)  # type: ignore[call-overload]
    net = tuple((int(part), abs(event), 1 if event > 0 else -1) for event in events)
    origins = tuple(range(1, len(events) + 1))
    return Chunk(phase, events, origins, tuple(changes), net, repeats)


def totals(left_out: tuple[int, ...], *chunks: Chunk) -> dict[Phase, int]:
    """Peaks in blocks, without what is static."""
    peaks = measure(Trace(SIZES, chunks), NUMBERS, left_out, STATIC)
    return {phase: (peak.total - 123) // 512 for phase, peak in peaks.items()}


@pytest.mark.parametrize(
    ("elements", "dtype", "expected"),
    [
        (N, FLOAT32, 512),
        (N, BOOL, 512),
        (3 * N, FLOAT32, 1536),
        (N * N, FLOAT16, 32_768),
        (ONE, INT64, 512),
    ],
)
def test_a_size_takes_whole_blocks(elements: Size, dtype: DType, expected: int) -> None:
    trace = Trace((Bytes(elements, dtype),), (chunk(Phase.LOSS, 1),))
    assert measure(trace, NUMBERS, (), STATIC)[Phase.LOSS].total - 123 == expected


def test_a_size_of_a_run_counts_for_each_left_out_layer() -> None:
    trace = Trace((Bytes(N, FLOAT32, run=1),), (chunk(Phase.LOSS, 1),))
    assert measure(trace, NUMBERS, (7, 3), STATIC)[Phase.LOSS].total - 123 == 3 * 512


def test_a_total_is_the_sum_of_its_parts() -> None:
    assert Peak(Phase.LOSS, (1, 20, 300, 4000, 50_000)).total == 54_321


def test_a_peak_is_the_most_that_lives_at_once() -> None:
    assert totals((), chunk(Phase.FORWARD, 1, 3, -3, 2)) == {Phase.FORWARD: 5}


def test_what_is_left_of_a_phase_lives_in_the_next() -> None:
    found = totals((), chunk(Phase.FORWARD, 3, 1, -1), chunk(Phase.LOSS, 2, -2, -3))
    assert found == {Phase.FORWARD: 5, Phase.LOSS: 6}


def test_a_phase_of_several_chunks_has_the_peak_of_the_highest() -> None:
    found = totals((), chunk(Phase.FORWARD, 1), chunk(Phase.FORWARD, 3), chunk(Phase.LOSS, -3))
    assert found == {Phase.FORWARD: 5, Phase.LOSS: 5}


@pytest.mark.parametrize("left_out", [0, 1, 40])
def test_left_out_layers_add_what_one_of_them_keeps(left_out: int) -> None:
    layer = chunk(Phase.FORWARD, 1, 2, -2, repeats=(1, 0))
    found = totals((left_out,), layer, chunk(Phase.LOSS, 3))
    assert found[Phase.LOSS] == 1 + left_out + 4


@pytest.mark.parametrize("left_out", [0, 1, 40])
def test_the_peaks_parts_count_left_out_layers_too(left_out: int) -> None:
    chunks = (chunk(Phase.FORWARD, 1, 2, -2, repeats=(1, 0)), chunk(Phase.LOSS, 3))
    peaks = measure(Trace(SIZES, chunks), NUMBERS, (left_out,), STATIC)
    assert peaks[Phase.LOSS].parts == (100, 20, 3, 0, 512 * (1 + left_out + 4))


def test_a_chunk_may_stand_in_several_places() -> None:
    layer = chunk(Phase.FORWARD, 3, 1, -1, repeats=(1, 0))
    found = totals((2,), layer, layer, chunk(Phase.LOSS, 2))
    assert found == {Phase.FORWARD: 3 * 4 + 5, Phase.LOSS: 2 * 3 * 4 + 2}


def test_left_out_layers_repeat_chunks_before_as_well() -> None:
    before, last = chunk(Phase.FORWARD, 1), chunk(Phase.FORWARD, 2, repeats=(2, 0))
    assert totals((5,), before, last, chunk(Phase.LOSS, 3))[Phase.LOSS] == 6 * (1 + 2) + 4
