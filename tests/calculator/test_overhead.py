"""Memory beyond the allocated bytes."""

from hypothesis import given
from hypothesis import strategies as st

from calculator.bounds import SEVERAL
from calculator.cards import CARDS
from calculator.overhead import estimate_overhead, simulated_overhead, workspace_bytes
from calculator.units import GiB, MiB

PEAKS = st.integers(0, 4096 * GiB)


@given(PEAKS)
def test_the_estimate_lies_between_its_bounds_and_grows_with_the_peak(peak: int) -> None:
    less, more = (estimate_overhead(one, CARDS["t4"]) for one in (peak, peak + GiB))
    assert less.low < less.total < less.high
    assert less.total <= more.total


def test_each_of_two_handles_has_a_workspace_and_those_of_hopper_and_blackwell_are_larger() -> None:
    # aten/src/ATen/cuda/CublasHandlePool.cpp: 4096 KiB x 2 + 16 KiB x 8 before Hopper, then 32 MiB
    for name in ("h100", "b200", "rtx-5090"):
        assert estimate_overhead(0, CARDS[name]).workspace == 2 * 32 * MiB
    for name in ("t4", "a100-80", "rtx-4090"):
        assert estimate_overhead(0, CARDS[name]).workspace == 2 * (4096 * 2 + 16 * 8) * 1024


@given(PEAKS, st.integers(0, GiB), st.integers(0, GiB))
def test_the_simulated_sum_is_what_the_driver_shows(peak: int, unsplit: int, free: int) -> None:
    card = CARDS["t4"]
    allocated = peak + workspace_bytes(card) + unsplit
    found = simulated_overhead(peak, allocated, allocated + free, card, SEVERAL)
    assert peak + found.total == allocated + free + card.context
    assert found.low <= found.total <= found.high
    assert peak + found.low >= allocated  # no less than what is in use
