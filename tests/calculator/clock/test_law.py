"""The law that makes seconds of work."""

from dataclasses import replace

import pytest

from calculator.cards import find_card
from calculator.clock import FITTED, Efficiencies, Work, seconds
from calculator.clock.power import share_of_peak, shares_tried
from calculator.errors import InputError

PERFECT = Efficiencies(1e-15, 1.0, 1.0, 1.0, 1e-5)
NOTHING = Work(0, 0, 0, 0, 0, 0, 0, 0, 0)
T4 = find_card("t4")


def test_a_t4_takes_a_second_for_its_peak() -> None:
    # NVIDIA's data sheet: 65 TFLOP/s of 16-bit products, 8.1 of 32-bit ones, 320 GB/s
    assert seconds(replace(NOTHING, narrow=65 * 10**12), T4, PERFECT) == pytest.approx(1)
    assert seconds(replace(NOTHING, packed_wide=81 * 10**11), T4, PERFECT) == pytest.approx(1)
    assert seconds(replace(NOTHING, written=320 * 10**9), T4, PERFECT) == pytest.approx(1)


def test_launches_pass_while_the_card_computes() -> None:
    busy = replace(NOTHING, narrow=65 * 10**12, kernels=50_000)
    assert seconds(busy, T4, PERFECT) == pytest.approx(1)
    assert seconds(replace(busy, kernels=200_000), T4, PERFECT) == pytest.approx(2)


def test_a_card_at_its_power_limit_computes_what_that_pays_for() -> None:
    # 70 W at 1 pJ for a FLOP in 7 nm, and 1.875 times as much in 12 nm: 37.3 of 65 TFLOP/s
    limited = replace(PERFECT, energy=1e-12)
    work = replace(NOTHING, narrow=65 * 10**12)
    assert seconds(work, T4, limited) == pytest.approx(65 / (70 / 1.875))
    # 400 W pay for 400 TFLOP/s, more than the 312 that an A100 has
    a100 = find_card("a100-80")
    assert seconds(replace(NOTHING, narrow=312 * 10**12), a100, limited) == pytest.approx(1)


@pytest.mark.parametrize("name", ["rtx-3090", "rtx-4090", "l4", "p100", "v100-32", "mi300x"])
def test_no_card_is_taken_for_better_than_those_that_were_timed(name: str) -> None:
    tried = shares_tried(FITTED.energy)
    assert share_of_peak(find_card(name), FITTED.energy) <= max(tried)


def test_a_card_without_published_rates_is_refused() -> None:
    with pytest.raises(InputError, match="no published peaks"):
        seconds(NOTHING, replace(T4, bandwidth=0.0), PERFECT)
