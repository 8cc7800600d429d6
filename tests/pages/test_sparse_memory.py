"""Python's memory without its empty pages, as worker/sparse.js keeps it."""

import pytest

from tests.pages.scripts import printed
from tools.console import ROOT

# Prints the size of what is kept, and whether it becomes the same memory again, in two parts that
# meet anywhere.
PROGRAM = """
const {{ condense, expand, sizeOf }} = await import({address});
const memory = new Uint8Array({size});
for (const [from, to] of {runs}) for (let at = from; at < to; at += 1) memory[at] = at % 251 + 1;
const kept = condense(memory);
const isSame = (start) => {{
  const again = new Uint8Array(sizeOf(kept));
  expand(kept, 0, again.subarray(0, start));
  expand(kept, start, again.subarray(start));
  return again.length === memory.length && again.every((byte, at) => byte === memory[at]);
}};
const starts = [0, 9, 4096, 5000, 40959].map((start) => Math.min(start, {size}));
console.log(kept.length, starts.map(isSame).join());
"""


@pytest.mark.parametrize(
    ("size", "runs", "kept"),
    [
        (40960, [], 8),
        (40960, [[5000, 5001]], 16 + 4096),
        (40960, [[4095, 4097]], 16 + 8192),  # neighbors are one run
        (40960, [[0, 1], [40959, 40960]], 24 + 8192),
        (10, [[9, 10]], 16 + 10),  # less than a page, and no whole number at its end
        (8192, [[0, 8192]], 16 + 8192),
    ],
)
def test_memory_is_kept_without_empty_pages(size: int, runs: list[list[int]], kept: int) -> None:
    address = (ROOT / "docs" / "assets" / "worker" / "sparse.js").as_uri()
    found = printed(PROGRAM.format(address=repr(address), size=size, runs=runs))
    assert found.split() == [str(kept), ",".join(["true"] * 5)]
