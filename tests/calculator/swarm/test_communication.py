"""Bytes and seconds of an exchange, against the 2021 run's published sizes and by hand."""

from hypothesis import given
from hypothesis import strategies as st

from calculator.swarm.communication import all_reduce_bytes, gradient_bytes
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
