"""One of several real processes that train together on the CPU: ``gloo.py RANK STORE WORDS``.

Prints the row of its step; the processes talk over gloo.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from validation import counting_device


def main(rank: int, store: str, words: list[str]) -> None:
    """Measure one rank's step beside the others'."""
    counting_device.load()
    import torch.distributed as dist

    from validation.configuration import parse
    from validation.measure import measure_rank

    configuration = parse(words)
    size = configuration.resolved.all_gpus

    @contextmanager
    def several(*_: object) -> Iterator[Any]:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
        try:
            yield SimpleNamespace(forget=lambda: None, flat=(), moved={})
            dist.barrier()
        finally:
            dist.destroy_process_group()

    with patch("validation.session.ranks", several):
        print(json.dumps(measure_rank(configuration, "cpu", rank)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
