"""Bytes in use on a tape, read from its ledger without the calculator's own sums."""

from collections import Counter

from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Ledger, part_events
from calculator.autograd.sizes import Size
from calculator.parts import Part

Living = Counter[tuple[Size, DType]]


def living(ledger: Ledger, part: Part | None = None) -> Living:
    """Elements and number format of all that lives now, or as one part, and how often."""
    shapes = {number: shape for shape, number in ledger.sizes.items()}
    counts: Living = Counter()
    for _, of, event in part_events(ledger.events, ledger.parts, ledger.moves):
        if part is None or of is part or of == part:
            counts[shapes[abs(event)]] += 1 if event > 0 else -1
    assert min(counts.values(), default=0) >= 0, "something died twice"
    return +counts
