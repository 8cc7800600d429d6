"""What lives on a tape, read off its ledger without the calculator's own sums."""

from collections import Counter

from calculator.ledger import Ledger, Part

Living = Counter[tuple[str, int]]


def living(ledger: Ledger) -> Living:
    """Elements and bytes of a number of all that lives now, and how often."""
    shapes = {number: shape for shape, number in ledger.sizes.items()}
    counts: Living = Counter()
    for event in ledger.events:
        counts[shapes[abs(event)]] += 1 if event > 0 else -1
    assert min(counts.values(), default=0) >= 0, "something died twice"
    return +counts


def living_as(ledger: Ledger, part: Part) -> Living:
    """The same for what lives as one part."""
    shapes = {number: shape for shape, number in ledger.sizes.items()}
    counts: Living = Counter()
    for _, of, event in ledger.part_events:
        if of is part or of == part:
            counts[shapes[abs(event)]] += 1 if event > 0 else -1
    assert min(counts.values(), default=0) >= 0, "something died twice"
    return +counts
