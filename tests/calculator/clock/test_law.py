"""The law that makes seconds of work."""

from dataclasses import replace

import pytest

from calculator.cards import find_card
from calculator.clock import Efficiencies, Work, seconds
from calculator.errors import InputError

PERFECT = Efficiencies(1.0, 1.0, 1.0, 1.0, 1e-5)
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


def test_a_generation_has_its_own_share_of_the_peak() -> None:
    half = replace(PERFECT, by_generation={(7, 5): 0.5})
    work = replace(NOTHING, narrow=65 * 10**12)
    assert seconds(work, T4, half) == pytest.approx(2)
    assert seconds(replace(work, narrow=312 * 10**12), find_card("a100-80"), half) == pytest.approx(
        1
    )


def test_a_card_without_published_rates_is_refused() -> None:
    with pytest.raises(InputError, match="no published peaks"):
        seconds(NOTHING, replace(T4, bandwidth=0.0), PERFECT)
