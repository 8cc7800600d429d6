"""What one more layer keeps for the backward pass, as a formula read off the tape."""

from collections import Counter
from math import prod
from typing import Final

from calculator.architecture import Architecture
from calculator.families.sizes import structure_of, symbols_of
from calculator.families.structure import SIMULATED
from calculator.ledger import Moment, Part
from calculator.techniques import Plan, resolve
from calculator.trace import Size, record

# the products that occur, as a formula lists them
TERMS: Final = ("N d", "Q", "N h", "B h E", "N")
# products of symbols that are written as one letter: scores of all heads
SCORES: Final = ("B", "S", "S", "h")


def kept_by_layer(architecture: Architecture, plan: Plan) -> dict[str, int]:
    r"""Bytes that one layer in the middle keeps, as coefficients of products of sizes.

    $$\text{kept} = \sum_i c_i \cdot m_i$$

    with products m of N = B S tokens, d hidden size, Q = B h S^2 scores, and c bytes. Autocast's
    16-bit copies of the weights, which live as long, are left out. In pure 16-bit numbers this
    is the published 34 N d + 5 Q of a layer with GELU in one operation.

    >>> from calculator.catalog import MODELS
    >>> plan = Plan(batch_size=2, precision="half", attention="eager")
    >>> kept_by_layer(MODELS["bert-base"], plan)
    {'N d': 34, 'Q': 5, 'N': 16}

    Source: korthikanti
    """
    resolved = resolve(architecture, plan)
    structure, _ = structure_of(architecture, resolved)
    trace = record(structure)
    full = next(n for n, run in enumerate(structure.runs) if len(run.slots) == SIMULATED)
    chunk = next(
        chunk
        for number, chunk in enumerate(trace.chunks)
        if chunk.repeats == (number, number + 1, full) and chunk.moment is Moment.FORWARD
    )
    numbers = symbols_of(architecture, resolved)
    terms: Counter[str] = Counter()
    for part, size_number, count in chunk.net:
        size = trace.sizes[size_number - 1]
        if part == Part.ACTIVATIONS and "B" in _expanded(size):
            name, factor = _in_hidden_sizes(size, numbers)
            terms[name] += count * factor * size.item
    return dict(sorted(terms.items(), key=lambda term: TERMS.index(term[0])))


def _expanded(size: Size) -> tuple[str, ...]:
    """The symbols with N written as B S."""
    return tuple(part for name in size.symbols for part in ("BS" if name == "N" else name))


def _in_hidden_sizes(size: Size, numbers: dict[str, int]) -> tuple[str, int]:
    """The product with every width written as a multiple of d, and that multiple."""
    if tuple(sorted(_expanded(size))) == SCORES:
        return "Q", size.factor
    widths = [name for name in size.symbols if name in ("a", "d", "f")]
    rest = [name for name in size.symbols if name not in widths]
    factor = size.factor * prod(numbers[name] // numbers["d"] for name in widths)
    return " ".join([*rest, *("d" for _ in widths)]), factor
