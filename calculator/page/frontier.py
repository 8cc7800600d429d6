"""The frontier of batch and length as the page draws it: for each length, the most that fits."""

from dataclasses import replace
from math import log2
from typing import Any, Final
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.errors import InputError
from calculator.page.states import Params, chosen, read_state
from calculator.plan import Plan
from calculator.planner.largest import largest_batch
from calculator.resolution import resolve
from calculator.units import format_count

LENGTHS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
DIGITS: Final = 4
NONE_FITS: Final = (
    "Not even one sequence fits at any of these lengths. See above for what would make it fit."
)


def draw_frontier(params: Params) -> dict[str, Any]:
    """For lengths that grow by ratios, the largest micro-batch that fits.

    Each row has its length and batch as texts, its bar's share of the width, and the state that it
    leads to, as the page's address holds it; None where not even one sequence fits.
    """
    architecture, plan, gpu = read_state(params)
    here = resolve(architecture, plan).sequence_length
    lengths = sorted({*LENGTHS, here})
    batches = {
        length: batch
        for length in lengths
        if (batch := _largest(architecture, plan, gpu, length)) is not None
    }
    most = max(batches.values())
    rows = []
    for length, batch in batches.items():
        other = None if length == here else length
        rows.append(
            {
                "length": format_count(length),
                "batch": format_count(batch) if batch else "none fits",
                "share": round(_share(batch, most), DIGITS),
                "here": other is None,
                "query": _query(architecture, plan, params, other, batch) if batch else None,
            }
        )
    return {"rows": rows, "note": "" if most else NONE_FITS}


def _largest(architecture: Architecture, plan: Plan, gpu: Gpu, length: int) -> int | None:
    """The largest batch at a length, 0 where none fits; None for a length it cannot have."""
    if architecture.positions and length > architecture.positions:
        return None
    try:
        longer = replace(plan, sequence_length=length)
        return largest_batch(architecture, longer, gpu.memory) or 0
    except InputError:
        return None


def _share(batch: int, most: int) -> float:
    """The bar's share of the width: batches are drawn by their ratios."""
    return log2(2 * batch) / log2(2 * most) if batch else 0.0


def _query(
    architecture: Architecture, plan: Plan, params: Params, length: int | None, batch: int
) -> str:
    """The state with that batch, and with that length unless it stays."""
    there = replace(plan, batch_size=batch)
    if length is not None:
        there = replace(there, sequence_length=length)
    return urlencode(chosen(architecture, there, params))
