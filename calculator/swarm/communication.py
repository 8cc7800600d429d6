"""The cost of an exchange of gradients: bytes, and seconds at a connection's rate."""

import math
from collections.abc import Sequence
from typing import Final

from calculator.errors import InputError
from calculator.tensors import ParameterTensor

GRADIENT_BITS: Final = (8, 16, 32)
# tensors with at least this many elements travel in 8 bits; smaller ones keep 16, as in 2021
LARGE_TENSOR: Final = 2**16


def gradient_bytes(tensors: Sequence[ParameterTensor], bits: int) -> int:
    r"""Bytes of one copy of all gradients on the wire, without headers and scales.

    $$\sum_i n_i \, b_i / 8$$

    with n_i the elements of tensor i and b_i the bits per element; if large tensors travel in 8
    bits, those with fewer than 65,536 elements keep 16.

    >>> gradient_bytes([ParameterTensor("matrix", (1024, 1024)), ParameterTensor("bias", (8,))], 8)
    1048592

    Source: together (section 3.3)

    Raises:
        InputError: if `bits` is not 8, 16 or 32.
    """
    if bits not in GRADIENT_BITS:
        raise InputError("bits", bits, "must be 8, 16 or 32")
    return sum(
        tensor.copies * tensor.elements * _bits_of(tensor, bits) // 8
        for tensor in tensors
        if tensor.trained
    )


def _bits_of(tensor: ParameterTensor, bits: int) -> int:
    return max(bits, 16) if tensor.elements < LARGE_TENSOR else bits


def all_reduce_bytes(message_bytes: int, peers: int) -> int:
    r"""Bytes that each peer sends, and also receives, to average a message among peers.

    $$2 \, G \, \frac{n - 1}{n}$$

    with G the bytes of the message and n the number of peers. Each peer keeps one of n parts to
    average, sends each of the other n - 1 parts to the peer that averages it, and sends the part
    that it has averaged back to n - 1 others.

    >>> all_reduce_bytes(100, 4)  # 75 out to be averaged, and 3 times 25 averaged back
    150

    Source: hivemind (averaging/allreduce.py)

    Raises:
        InputError: if there is less than one peer or the size is negative.
    """
    if message_bytes < 0:
        raise InputError("message_bytes", message_bytes, "must not be below 0")
    if peers < 1:
        raise InputError("peers", peers, "must be at least 1")
    return 2 * message_bytes * (peers - 1) // peers


def transfer_seconds(size: int, bits_per_second: float) -> float:
    r"""Seconds to transfer a number of bytes at a connection's full rate.

    $$8 \, G / r$$

    with G the bytes and r the rate in bit/s. Latency, lost packets and TCP's overhead are extra.

    >>> transfer_seconds(250_000_000, 50e6)  # 2 Gbit at 50 Mbit/s
    40.0

    Raises:
        InputError: if the rate is not above 0.
    """
    if not (math.isfinite(bits_per_second) and bits_per_second > 0):
        raise InputError("bits_per_second", bits_per_second, "must be a finite number above 0")
    return 8 * size / bits_per_second
