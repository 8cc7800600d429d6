r"""An update of all parameters in about 0.23 bits per parameter.

Of each block of 4,096 elements the 64 largest are kept (a shorter block keeps 1 in 64). A kept
element is a sign and one of the block's two magnitudes: the mean of those above the mean of all
kept magnitudes, and the mean of the others.

An encoded update is three sections, without a header; the model's shapes give their lengths:

1. scales: for each block the lower and the higher magnitude, bfloat16, little-endian;
2. values: 2 bits per kept element, block by block in the order of their places: bit 0 is set for
   the higher magnitude, bit 1 for a negative value;
3. places: 12 bits per kept element, its place within its block, rising.

Sections 2 and 3 are packed as `packing` says. All lengths are fixed and spare bits are zero, so
that the bytes hold nothing else, and whoever decodes the same bytes has the same values.

Sources: 64 of 4,096 elements, 2 bits and 12-bit places: SparseLoCo, arXiv:2508.15706, and
Covenant-72B, arXiv:2603.08163; the two magnitudes are this project's choice.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from calculator.errors import InputError
from training.access.envelope import FileError
from training.sparse.layout import BLOCK, PLACE_BITS, VALUE_BITS, Layout, kept_of, pack, unpack

_HIGHER, _NEGATIVE = 1, 2  # bits of a value
_LARGEST = torch.finfo(torch.bfloat16).max


@dataclass(frozen=True)
class Update:
    """A decoded update; every element that is not listed is zero.

    Attributes:
        places: of the elements in the flat vector, no two alike: int64 [sent].
        values: float32 [sent].
        norm: Euclidean, the same on every machine for the same bytes.
    """

    places: torch.Tensor
    values: torch.Tensor
    norm: float

    def dense(self, elements: int) -> torch.Tensor:
        """The whole flat vector: float32 [elements]."""
        vector = torch.zeros(elements, device=self.values.device)
        vector[self.places] = self.values
        return vector


@torch.no_grad()
def encode(vector: torch.Tensor, layout: Layout) -> bytes:
    """Encode the largest elements of a flat vector, which may be on any device.

    Args:
        vector: float32 [layout.elements].

    Raises:
        InputError: its length is another, or an element is not finite.
    """
    if vector.shape != (layout.elements,):
        raise InputError("vector", tuple(vector.shape), f"must be [{layout.elements}]")
    if not bool(vector.isfinite().all()):
        raise InputError("vector", "the update", "must be finite in every element")
    parts = zip(*map(_encode_rows, _rows(vector, layout)), strict=True)
    scales, codes, places = map(torch.cat, parts)
    content = scales.to(torch.bfloat16).cpu().view(torch.int16).numpy().astype("<i2").tobytes()
    for numbers, bits in ((codes, VALUE_BITS), (places, PLACE_BITS)):
        content += pack(numbers, bits).cpu().numpy().tobytes()
    return content


def decode(content: bytes, layout: Layout, largest_norm: float = math.inf) -> Update:
    """Read an encoded update, whoever sent it.

    Args:
        largest_norm: that an update may have.

    Raises:
        FileError: with the reason, when it is not one or weighs too much.
    """
    if len(content) != layout.update_bytes:
        raise FileError(f"{len(content):,} bytes, but an update has {layout.update_bytes:,}")
    parts, start = [], 0
    for size in layout.sections:
        parts.append(np.frombuffer(content, np.uint8, size, start).copy())
        start += size
    low, high = _read_scales(parts[0])
    codes = unpack(torch.from_numpy(parts[1]), VALUE_BITS, layout.sent)
    places = unpack(torch.from_numpy(parts[2]), PLACE_BITS, layout.sent)
    _check_places(places, layout)
    is_higher = (codes & _HIGHER) > 0
    norm = _norm(low, high, is_higher, layout)
    if not norm <= largest_norm:
        raise FileError(f"its norm is {norm:.3g}, and {largest_norm:.3g} is the most")
    block_of = layout.block_of
    sizes = torch.where(is_higher, high[block_of], low[block_of])
    values = torch.where((codes & _NEGATIVE) > 0, -sizes, sizes)
    return Update(layout.starts[block_of] + places, values, norm)


def _rows(vector: torch.Tensor, layout: Layout) -> list[torch.Tensor]:
    """Blocks of equal length as rows, in the layout's order."""
    rows = []
    for tensor in vector.split(list(layout.sizes)):
        whole = len(tensor) - len(tensor) % BLOCK
        rows += [tensor[:whole].view(-1, BLOCK)] if whole else []
        rows += [tensor[whole:].view(1, -1)] if whole < len(tensor) else []
    return rows


def _encode_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scales [2 * rows], codes [sent] and places [sent] of blocks [rows, length]."""
    largest = rows.abs().topk(kept_of(rows.shape[1]), dim=1, sorted=False).indices
    places = largest.sort(dim=1).values
    values = rows.gather(1, places)
    sizes = values.abs()
    is_higher = sizes > sizes.mean(dim=1, keepdim=True)
    low, high = _mean(sizes, ~is_higher), _mean(sizes, is_higher)
    high = torch.where(is_higher.any(dim=1), high, low)  # all alike
    scales = torch.stack([torch.minimum(low, high), high], dim=1).clamp_max(_LARGEST)
    codes = is_higher * _HIGHER + (values < 0) * _NEGATIVE
    return scales.flatten(), codes.flatten(), places.flatten()


def _mean(sizes: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of each row's elements under a mask; 0 where there are none."""
    counts = mask.sum(dim=1).clamp_min(1)
    return (sizes * mask / counts[:, None]).sum(dim=1)  # divided first, lest the sum overflow


def _read_scales(content: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Lower and higher magnitudes: float32 [blocks] each."""
    scales = torch.from_numpy(content.view("<i2").astype(np.int16)).view(torch.bfloat16)
    low, high = scales.float().view(-1, 2).unbind(1)
    if not bool(scales.isfinite().all()):
        raise FileError("a scale that is not finite")
    if bool(torch.signbit(scales).any()):
        raise FileError("a negative scale")
    if bool((low > high).any()):
        raise FileError("a lower magnitude above the higher one")
    return low.contiguous(), high.contiguous()


def _check_places(places: torch.Tensor, layout: Layout) -> None:
    if bool((places >= layout.lengths[layout.block_of]).any()):
        raise FileError("a place out of its block's range")
    rises = places[1:] > places[:-1]
    is_same_block = layout.block_of[1:] == layout.block_of[:-1]
    if not bool((rises | ~is_same_block).all()):
        raise FileError("places that are repeated or out of order")


def _norm(low: torch.Tensor, high: torch.Tensor, is_higher: torch.Tensor, layout: Layout) -> float:
    """Correctly rounded, so that it depends neither on threads nor on the order of addition."""
    until = torch.cat([torch.zeros(1, dtype=torch.int64), is_higher.cumsum(0)])
    ends = layout.kept.cumsum(0)
    higher = until[ends] - until[ends - layout.kept]
    squares = torch.cat(
        [higher * high.double().square(), (layout.kept - higher) * low.double().square()]
    )
    return math.sqrt(math.fsum(squares.tolist()))
