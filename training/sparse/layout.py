"""A model's parameters as one flat vector, cut into blocks of which a few elements are sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import torch
from torch.nn import functional

from calculator.errors import InputError
from training.access.envelope import FileError

BLOCK = 4096  # elements; a place within it takes 12 bits
KEPT = 64  # elements of a whole block that are sent
PLACE_BITS, VALUE_BITS = 12, 2
SCALE_BYTES = 4  # of a block: two magnitudes in bfloat16


def kept_of(length: int) -> int:
    """Elements that are sent of a block: 1 in 64, at least one.

    >>> kept_of(4096), kept_of(1024), kept_of(1)
    (64, 16, 1)
    """
    return -(-length * KEPT // BLOCK)


@dataclass(frozen=True)
class Layout:
    """Blocks of tensors that stand one after another in a flat vector.

    A block belongs to one tensor, whose last block may be shorter, so that a tensor of small
    values is never in the shadow of another.

    Attributes:
        sizes: elements of each tensor, at least 1.
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the sizes; raises InputError if there is no tensor, or one without elements."""
        if not self.sizes or min(self.sizes) < 1:
            raise InputError("sizes", self.sizes, "must be of at least one tensor, none empty")

    @classmethod
    def of(cls, tensors: Iterable[torch.Tensor]) -> "Layout":
        """The layout of tensors in their order."""
        return cls(tuple(tensor.numel() for tensor in tensors))

    @cached_property
    def elements(self) -> int:
        """Elements of all tensors."""
        return sum(self.sizes)

    @cached_property
    def lengths(self) -> torch.Tensor:
        """Elements of each block: int64 [blocks]."""
        lengths = [
            min(BLOCK, size - start) for size in self.sizes for start in range(0, size, BLOCK)
        ]
        return torch.tensor(lengths)

    @cached_property
    def starts(self) -> torch.Tensor:
        """Place of each block in the flat vector: int64 [blocks]."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def kept(self) -> torch.Tensor:
        """Elements of each block that are sent: int64 [blocks]."""
        return (self.lengths * KEPT + BLOCK - 1) // BLOCK

    @cached_property
    def block_of(self) -> torch.Tensor:
        """The block of each element that is sent: int64 [sent]."""
        return torch.repeat_interleave(torch.arange(len(self.kept)), self.kept)

    @property
    def blocks(self) -> int:
        """Blocks of all tensors."""
        return len(self.lengths)

    @property
    def sent(self) -> int:
        """Elements that are sent."""
        return len(self.block_of)

    @property
    def sections(self) -> tuple[int, int, int]:
        """Bytes of an update's three sections: scales, values, places."""
        return (
            SCALE_BYTES * self.blocks,
            packed_bytes(self.sent, VALUE_BITS),
            packed_bytes(self.sent, PLACE_BITS),
        )

    @property
    def update_bytes(self) -> int:
        """Bytes of an encoded update, the same for every one."""
        return sum(self.sections)


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
        FileError: there are more or fewer bytes, or what is left of the last group is not zero.
    """
    each, width = _group(bits)
    if len(content) != packed_bytes(count, bits):
        raise FileError(f"{len(content)} bytes for {count} numbers of {bits} bits")
    groups = content.to(torch.int64).view(-1, width)
    words = (groups << _shifts(width, 8, content.device)).sum(dim=1)
    mask = (1 << bits) - 1
    numbers = ((words[:, None] >> _shifts(each, bits, content.device)) & mask).flatten()
    if bool(numbers[count:].any()):
        raise FileError("bits after the last number that are not zero")
    return numbers[:count]


def _group(bits: int) -> tuple[int, int]:
    """Numbers and bytes of the smallest group that fills whole bytes."""
    shared = gcd(bits, 8)
    return 8 // shared, bits // shared


def _shifts(count: int, bits: int, device: torch.device) -> torch.Tensor:
    return torch.arange(count, device=device) * bits
