"""Formats for sending tensors: 8 bits for large ones, 16 for small ones, otherwise unchanged.

Most bytes are in a few large tensors, where 8 bits cost little precision; norms and scales are
small and keep 16. Whole numbers, such as an optimizer's 8-bit states, are sent unchanged.
"""

from collections.abc import Sequence
from enum import StrEnum

import torch
from hivemind.compression import (
    CompressionBase,
    Float16Compression,
    NoCompression,
    Uniform8BitQuantization,
)
from hivemind.compression.adaptive import AdaptiveCompressionBase
from hivemind.compression.base import CompressionInfo


class WireFormat(StrEnum):
    """Formats for sending floating-point tensors."""

    ADAPTIVE = "adaptive"  # 8 bits from the threshold on, 16 below it
    FLOAT16 = "float16"
    EXACT = "exact"  # as they are


class WireCompression(AdaptiveCompressionBase):
    """Chooses by element type and by the size of the whole tensor, not of the part sent.

    Args:
        wire_format: how floating-point tensors are sent.
        threshold: elements from which `ADAPTIVE` takes 8 bits.
    """

    def __init__(self, wire_format: WireFormat, threshold: int) -> None:
        self.wire_format, self.threshold = wire_format, threshold
        self._exact, self._float16 = NoCompression(), Float16Compression()
        self._uniform8 = Uniform8BitQuantization()

    def choose_compression(self, info: CompressionInfo) -> CompressionBase:
        """The compression for a tensor."""
        if self.wire_format is WireFormat.EXACT or info.descriptor.dtype not in _COMPRESSIBLE:
            return self._exact
        adaptive = self.wire_format is WireFormat.ADAPTIVE
        large = adaptive and info.descriptor.numel() >= self.threshold
        return self._uniform8 if large else self._float16


_COMPRESSIBLE = (torch.float32, torch.float64, torch.float16)


def expected_bytes(tensors: Sequence[torch.Tensor], compression: WireCompression) -> int:
    """Bytes of one copy of `tensors` on the wire, without the few bytes around each part."""
    total = 0.0
    for tensor in tensors:
        info = CompressionInfo.from_tensor(tensor)
        total += tensor.nbytes * compression.estimate_compression_ratio(info)
    return round(total)
