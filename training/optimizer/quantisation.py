"""Optimizer states in 8 bits: block-wise dynamic quantisation, by bitsandbytes or by plain torch.

Each block of elements is divided by its largest magnitude; each quotient becomes the index of the
nearest of 256 fixed levels, which lie dense around zero. Source: Dettmers et al. 2021,
arXiv:2110.02861, sections 2 and 3.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import torch

_DECADES = 7  # powers of ten that the levels span


@lru_cache(maxsize=8)
def dynamic_levels(signed: bool) -> torch.Tensor:
    """The 256 levels in rising order: float32 [256], in [-1, 1] or [0, 1].

    Decade k (from 1e-6 to 1) holds twice as many levels as the one below it: the middles of equal
    parts of [0.1, 1], times the decade; zero and one are levels too.
    """
    positive = []
    for decade in range(_DECADES):
        parts = 2 ** (decade if signed else decade + 1)
        edges = torch.linspace(0.1, 1, parts + 1, dtype=torch.float32)
        middles = (edges[:-1] + edges[1:]) / 2
        positive += (10.0 ** (decade - _DECADES + 1) * middles).tolist()
    negative = [-level for level in positive] if signed else []
    levels = [*negative, 0.0, *positive, 1.0]
    return torch.tensor(sorted(levels), dtype=torch.float32)


@dataclass(slots=True)
class QuantisedTensor:
    """Codes uint8 [n] and, for each block of elements, its largest magnitude: float32 [blocks]."""

    codes: torch.Tensor
    scales: torch.Tensor


def quantise(values: torch.Tensor, signed: bool, block_size: int) -> QuantisedTensor:
    """Quantise a flat float32 tensor on the CPU, with bitsandbytes where it is installed."""
    if has_bitsandbytes():
        from bitsandbytes.functional import quantize_blockwise

        levels = dynamic_levels(signed)
        codes, state = quantize_blockwise(values, code=levels, blocksize=block_size)
        return QuantisedTensor(codes, state.absmax)
    return quantise_plainly(values, signed, block_size)


def dequantise(tensor: QuantisedTensor, signed: bool, block_size: int) -> torch.Tensor:
    """The float32 values that a quantised tensor stands for: [n]."""
    if has_bitsandbytes():
        from bitsandbytes.functional import dequantize_blockwise

        values: torch.Tensor = dequantize_blockwise(
            tensor.codes, absmax=tensor.scales, code=dynamic_levels(signed), blocksize=block_size
        )
        return values
    return dequantise_plainly(tensor, signed, block_size)


def quantise_plainly(values: torch.Tensor, signed: bool, block_size: int) -> QuantisedTensor:
    """`quantise` in torch operations alone."""
    levels = dynamic_levels(signed)
    blocks = _in_blocks(values, block_size)
    scales = blocks.abs().amax(dim=1)
    normal = blocks / scales.clamp_min(torch.finfo(torch.float32).tiny)[:, None]
    borders = (levels[:-1] + levels[1:]) / 2
    codes = torch.bucketize(normal, borders).to(torch.uint8)
    return QuantisedTensor(codes.flatten()[: len(values)].clone(), scales)


def dequantise_plainly(tensor: QuantisedTensor, signed: bool, block_size: int) -> torch.Tensor:
    """`dequantise` in torch operations alone."""
    values = dynamic_levels(signed)[tensor.codes.int()]
    scaled = _in_blocks(values, block_size) * tensor.scales[:, None]
    return scaled.flatten()[: len(values)]


@lru_cache(maxsize=1)
def has_bitsandbytes() -> bool:
    """True if bitsandbytes is installed and loads."""
    if find_spec("bitsandbytes") is None:
        return False
    try:
        import bitsandbytes.functional  # noqa: F401
    except (ImportError, OSError, RuntimeError):  # a build for another system or torch
        return False
    return True


def _in_blocks(values: torch.Tensor, block_size: int) -> torch.Tensor:
    """Values as [blocks, block_size], the last block filled up with zeros."""
    missing = -len(values) % block_size
    return torch.nn.functional.pad(values, (0, missing)).view(-1, block_size)
