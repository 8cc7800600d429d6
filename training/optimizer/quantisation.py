"""Optimizer states in 8 bits: bitsandbytes' block-wise dynamic quantisation, on the CPU.

Each block of elements is divided by its largest magnitude; each quotient becomes the index of the
nearest of 256 fixed levels, which lie dense around zero. Source: Dettmers et al. 2021,
arXiv:2110.02861, sections 2 and 3.

Importing this module is cheap: it does not load bitsandbytes.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch


@lru_cache(maxsize=2)
def dynamic_levels(signed: bool) -> torch.Tensor:
    """The 256 levels in rising order: float32 [256], in [-1, 1] or [0, 1]."""
    from bitsandbytes.functional import create_dynamic_map

    levels: torch.Tensor = create_dynamic_map(signed)
    return levels


@dataclass(slots=True)
class QuantisedTensor:
    """Codes uint8 [n] and, for each block of elements, its largest magnitude: float32 [blocks]."""

    codes: torch.Tensor
    scales: torch.Tensor


def quantise(values: torch.Tensor, signed: bool, block_size: int) -> QuantisedTensor:
    """Quantise a flat float32 tensor on the CPU."""
    from bitsandbytes.functional import quantize_blockwise

    levels = dynamic_levels(signed)
    codes, state = quantize_blockwise(values, code=levels, blocksize=block_size)
    return QuantisedTensor(codes, state.absmax)


def dequantise(tensor: QuantisedTensor, signed: bool, block_size: int) -> torch.Tensor:
    """The float32 values that a quantised tensor stands for: [n]."""
    from bitsandbytes.functional import dequantize_blockwise

    values: torch.Tensor = dequantize_blockwise(
        tensor.codes, absmax=tensor.scales, code=dynamic_levels(signed), blocksize=block_size
    )
    return values
