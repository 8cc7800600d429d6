"""Memory beyond the allocated bytes."""

from hypothesis import given
from hypothesis import strategies as st

from calculator.overhead import estimate_overhead
from calculator.units import GiB, MiB

PEAKS = st.integers(0, 4096 * GiB)


@given(PEAKS)
def test_the_estimate_lies_between_its_bounds(peak: int) -> None:
    overhead = estimate_overhead(peak)
    assert overhead.low < overhead.total < overhead.high


@given(PEAKS)
def test_more_peak_never_has_less_on_top(peak: int) -> None:
    assert estimate_overhead(peak + GiB).total >= estimate_overhead(peak).total


def test_hopper_has_cublas_larger_workspace() -> None:
    # PyTorch: 32 MiB on Hopper, 8,519,680 bytes before
    assert estimate_overhead(0, "Hopper").workspace == 32 * MiB
    assert estimate_overhead(0, "Ampere").workspace == 8_519_680
