"""Tensors of weights with their sizes as numbers, and bytes that live from step to step."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from calculator.allocator import round_block


class Cut(NamedTuple):
    """The shape of a weight of which so many GPUs have parts along an axis."""

    shape: tuple[int, ...]
    axis: int
    gpus: int


@dataclass(frozen=True, slots=True)
class ParameterTensor:
    """`copies` tensors of the same shape; one that is not `trained` never gets a gradient.

    A gradient may be a part of a larger tensor, of the shape `inside`, which it keeps alive. With
    a `width`, an element has so many bytes, whatever the plan's weights have; as many numbers as
    are `packed` share them. A `table` is that of an embedding or output layer. One that is `idle`
    asks for a gradient that no loss reaches. `is_split` says that it is a share, or stands beside
    one, and `is_summed` that the update sums the gradients that several GPUs have for it. Its
    `cuts` are those of the GPUs of a layer, then of replicas.
    """

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    trained: bool = True
    inside: tuple[int, ...] | None = None
    width: int | None = None
    packed: int = 1
    table: bool = False
    is_split: bool = False
    is_summed: bool = False
    idle: bool = False
    cuts: tuple[Cut, ...] = ()

    @property
    def gradient_elements(self) -> int:
        """Number of elements that one gradient keeps alive."""
        return prod(self.inside or self.shape)

    @property
    def elements(self) -> int:
        """Number of elements in one of them."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Statics:
    """Bytes that live from step to step, on the GPU and in RAM, and what a step moves.

    `buckets` are the flat gradients of several GPUs, which exist in every phase. `paged` are states
    that are in neither of the two for good.
    """

    weights: int
    gradients: int
    optimizer: int = 0
    update: int = 0
    ram_weights: int = 0
    ram_gradients: int = 0
    ram_optimizer: int = 0
    ram_update: int = 0
    to_ram: int = 0
    to_gpu: int = 0
    buckets: int = 0
    paged: int = 0


def tensors_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """Bytes of one copy of all tensors at `item` bytes per element, unless they have their own."""
    return sum(
        each.copies * round_block(-(-each.elements * (each.width or item) // each.packed))
        for each in tensors
    )
