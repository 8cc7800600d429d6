"""Compressed files of a run, as live/compressed.js unpacks them."""

import pytest

from tests.pages.scripts import printed
from tools.console import ROOT

# Answers any request with so many zeros, compressed, and prints how many are unpacked.
PROGRAM = """
import {{ gzipSync }} from "node:zlib";
import {{ requestCompressed }} from "{address}";
globalThis.fetch = async () => new Response(gzipSync(Buffer.alloc({size}), {{level: 1}}));
const found = await requestCompressed(new URL("http://host/progress.jsonl"));
console.log(await found.unpack().then(({{length}}) => length, ({{name}}) => name));
"""


@pytest.mark.parametrize(("size", "found"), [(1000, "1000"), (2**28 + 1, "RangeError")])
def test_a_small_file_may_not_become_gigabytes(size: int, found: str) -> None:
    address = (ROOT / "docs" / "assets" / "live" / "compressed.js").as_uri()
    assert printed(PROGRAM.format(address=address, size=size)).strip() == found
