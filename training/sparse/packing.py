"""Small numbers of a fixed number of bits, packed into bytes without gaps.

The first number takes the lowest bits of the first byte. What is left of the last byte is zero.
"""

from math import gcd

import torch
from torch.nn import functional


def packed_bytes(count: int, bits: int) -> int:
    """The bytes that so many numbers take, in whole groups."""
    each, width = _group(bits)
    return -(-count // each) * width


def pack(numbers: torch.Tensor, bits: int) -> torch.Tensor:
    """Pack whole numbers below 2^bits, a flat tensor: uint8 [packed_bytes]."""
    each, width = _group(bits)
    numbers = numbers.to(torch.int64)
    groups = functional.pad(numbers, (0, -len(numbers) % each)).view(-1, each)
    words = (groups << _shifts(each, bits, numbers.device)).sum(dim=1)
    content = (words[:, None] >> _shifts(width, 8, numbers.device)) & 0xFF
    return content.to(torch.uint8).flatten()


def unpack(content: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """The `count` numbers in packed bytes: int64 [count].

    Raises:
        ValueError: there are more or fewer bytes, or what is left of the last group is not zero.
    """
    each, width = _group(bits)
    if len(content) != packed_bytes(count, bits):
        raise ValueError(f"{len(content)} bytes for {count} numbers of {bits} bits")
    groups = content.to(torch.int64).view(-1, width)
    words = (groups << _shifts(width, 8, content.device)).sum(dim=1)
    mask = (1 << bits) - 1
    numbers = ((words[:, None] >> _shifts(each, bits, content.device)) & mask).flatten()
    if bool(numbers[count:].any()):
        raise ValueError("bits after the last number that are not zero")
    return numbers[:count]


def _group(bits: int) -> tuple[int, int]:
    """Numbers and bytes of the smallest group that fills whole bytes."""
    shared = gcd(bits, 8)
    return 8 // shared, bits // shared


def _shifts(count: int, bits: int, device: torch.device) -> torch.Tensor:
    return torch.arange(count, device=device) * bits
