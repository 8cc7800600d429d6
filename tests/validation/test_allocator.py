"""The allocator's constants against the headers of the pinned PyTorch."""

import re
from pathlib import Path

import pytest
import torch

from calculator import allocator

# our constants by the names that PyTorch gives them
CONSTANTS = {
    "kMinBlockSize": allocator.BLOCK,
    "kSmallSize": allocator.SMALL,
    "kSmallBuffer": allocator.SMALL_SEGMENT,
    "kMinLargeAlloc": allocator.OWN_SEGMENT,
    "kRoundLarge": allocator.SEGMENT_STEP,
    "large_segment_size_": allocator.LARGE_SEGMENT,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_that_of_the_pinned_release(name: str) -> None:
    header = Path(torch.__file__).parent / "include" / "c10" / "core" / "AllocatorConfig.h"
    found = re.search(rf"\b{name}(?: = |{{)(\d+)", header.read_text(encoding="utf-8"))
    assert int(found[1]) == CONSTANTS[name]
