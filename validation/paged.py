"""CUDA's managed memory for bitsandbytes' paged optimizers, where there is no CUDA.

bitsandbytes' own code asks its library for the memory, wraps it in tensors, fills it and prefetches
it. Only these calls of the library are replaced: what they hand out are addresses that nobody
reads, as all on the counting GPU.
"""

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import torch

FIRST: Final = 1 << 52  # an address; the counting GPU's begin at 1 << 48


class ManagedMemory:
    """bitsandbytes' library with managed memory that is only counted."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._next = FIRST
        self.sizes: dict[int, int] = {}
        self.prefetched = 0

    def __getattr__(self, name: str) -> Any:
        """Everything else is the library's."""
        return getattr(self._library, name)

    def cget_managed_ptr(self, size: ctypes.c_size_t) -> int:
        """The address of a new piece of managed memory."""
        address = self._next
        self.sizes[address] = size.value
        self._next += size.value
        return address

    def cprefetch(
        self, address: ctypes.c_void_p, size: ctypes.c_size_t, device: ctypes.c_int32
    ) -> None:
        """Note what goes to the GPU before a kernel reads it."""
        assert self.sizes[address.value or 0] == size.value
        assert device.value >= 0, "prefetched to RAM"
        self.prefetched += size.value

    def cfill_fp32(self, address: ctypes.c_void_p, *_: object) -> None:
        """Nothing is written; the address must be one of ours."""
        assert address.value in self.sizes

    cfill_uint8 = cfill_fp32


@contextmanager
def managed_memory() -> Iterator[ManagedMemory]:
    """Run the block with managed memory that is only counted."""
    from bitsandbytes import functional

    pages = functional.GlobalPageManager.get_instance().paged_tensors
    memory = ManagedMemory(functional.lib)
    with patch("bitsandbytes.functional.lib", memory):
        try:
            yield memory
        finally:
            pages.clear()  # bitsandbytes holds on to all that it ever paged


def paged(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that are in managed memory."""
    return [item for item in tensors if getattr(item, "is_paged", False)]
