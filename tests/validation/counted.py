"""What the tests ask the process in which the counting device is loaded; each answer is JSON."""

from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import torch

from validation.configuration import parse
from validation.counting_device import Log, Place, counting_gpu
from validation.session import Unwatched, session


def births(function: Callable[[], object], place: Place = Place.GPU) -> list[tuple[str, int]]:
    """Operations and bytes of all that a function allocates."""
    log = Log()
    log.start()
    function()
    log.stop()
    made = [entry for entry in log.entries() if entry.place is place and entry.bytes > 0]
    return [(entry.operation, entry.bytes) for entry in made]


def storages() -> list[int]:
    """Blocks alive on the GPU with a tensor, a view of it, the view alone, and nothing."""
    log, found = Log(), []

    def count() -> None:
        alive = log.alive().values()
        found.append(sum(1 for _, place in alive if place is Place.GPU) - before)

    before = sum(1 for _, place in log.alive().values() if place is Place.GPU)
    with counting_gpu():
        whole = torch.empty(1000, device="cuda")
        count()
        view = whole[:10].view(2, 5)
        count()
        del whole
        count()
        del view
        count()
    return found


def silu() -> list[Any]:
    """What SiLU's backward allocates for 1,000 numbers."""
    with counting_gpu():
        x = torch.empty(1000, device="cuda", requires_grad=True)
        y, gradient = torch.nn.functional.silu(x), torch.empty(1000, device="cuda")
        return births(lambda: torch.autograd.grad(y, x, gradient))


def in_place_sums() -> list[Any]:
    """What a backward pass allocates in which three gradients meet, on the GPU and for real."""
    found = []
    for device, place in (("cuda", Place.GPU), ("cpu", Place.CPU)):
        with counting_gpu():
            x = torch.empty(1000, device=device, requires_grad=True)
            y = torch.sin(x) + torch.cos(x) + torch.exp(x)
            gradient = torch.empty(1000, device=device)

            def backward(y: Any = y, gradient: Any = gradient) -> None:
                y.backward(gradient)

            found.append([size for _, size in births(backward, place) if size > 64])
    return found


def workspaces() -> dict[str, list[Any]]:
    """What kernels allocate beside their outputs: sorted embeddings, both attention kernels."""
    with counting_gpu():
        table = torch.empty(100, 8, device="cuda", requires_grad=True)
        rows = torch.nn.functional.embedding(torch.zeros(4000, dtype=torch.int64).cuda(), table)
        gradient = torch.empty_like(rows)
        found = {"embedding": births(lambda: torch.autograd.grad(rows, table, gradient))}
        for name, dtype in (("efficient", torch.float32), ("flash", torch.bfloat16)):
            shape = (2, 3, 200, 64)  # sequences, heads, tokens, width
            q = torch.empty(shape, device="cuda", dtype=dtype, requires_grad=True)
            out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            head = torch.empty_like(out)

            def backward(q: Any = q, out: Any = out, head: Any = head) -> None:
                torch.autograd.grad(out, q, head)

            found[name] = births(backward)
        return found


def unlike(words: str) -> list[Any]:
    """Allocations of a step that only the counting GPU or only real memory makes.

    Compared by their order and bytes; numbers of 64 bytes and less are left out.
    """
    found = []
    for device in ("counting", "cpu"):
        with session(parse(words.split()), device) as made:
            entries = made.step().entries
        place = made.ledger.place
        entries = [item for item in entries if item.place is place and item.bytes > 64]
        found.append([(item.operation, item.node, item.bytes) for item in entries])
    counted, real = found
    matcher = SequenceMatcher(
        None, [item[2] for item in counted], [item[2] for item in real], autojunk=False
    )
    return [
        (counted[i:j], real[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"
    ]


def watched(words: str) -> list[int]:
    """The peak of a step with all marks and hooks, and of one without any."""
    with session(parse(words.split()), "counting") as made:
        first = max(peak.total for peak in made.step().peaks.values())
        ledger = made.ledger
        ledger.start()
        made.training.run(Unwatched())
        ledger.start_micro_step()
        ledger.keep()
        return [first, max(ledger.stop().totals)]
