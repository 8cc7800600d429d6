"""Bytes and seconds of an exchange, against the 2021 run's published sizes and by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import InputError
from calculator.swarm.communication import all_reduce_bytes, gradient_bytes, transfer_seconds
from calculator.tensors import ParameterTensor
from tests.calculator.plans import examples


def test_small_tensors_keep_16_bits_and_untrained_ones_stay() -> None:
    small = ParameterTensor("bias", (100,), copies=2)
    still = ParameterTensor("unused", (100,), trained=False)
    assert [gradient_bytes([small, still], bits) for bits in (8, 16, 32)] == [400, 400, 800]


@given(st.integers(0, 10**12), st.integers(1, 1000))
@examples(40)
def test_no_peer_sends_more_than_twice_the_message(size: int, peers: int) -> None:
    sent = all_reduce_bytes(size, peers)
    assert peers * sent <= 2 * size * (peers - 1) < peers * (sent + 1)
    assert 0 <= sent <= 2 * size
    assert all_reduce_bytes(size, 1) == 0


def test_a_slower_line_takes_so_much_longer() -> None:
    assert transfer_seconds(10**9, 10e9) == pytest.approx(0.8)
    assert transfer_seconds(10**9, 50e6) == pytest.approx(200 * 0.8)


@pytest.mark.parametrize("bits", [0, 4, 64])
def test_other_widths_are_refused(bits: int) -> None:
    with pytest.raises(InputError, match="bits"):
        gradient_bytes([], bits)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_line_has_a_rate(rate: float) -> None:
    with pytest.raises(InputError, match="bits_per_second"):
        transfer_seconds(1, rate)


def test_a_group_has_a_peer_and_a_message_no_negative_size() -> None:
    with pytest.raises(InputError, match="peers"):
        all_reduce_bytes(1, 0)
    with pytest.raises(InputError, match="message_bytes"):
        all_reduce_bytes(-1, 2)
