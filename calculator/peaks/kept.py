"""Bytes that one more layer keeps for the backward pass, as a formula read from the tape."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.sizes import Numbers
from calculator.errors import InputError
from calculator.parts import Part, Phase
from calculator.peaks.prepare import prepare
from calculator.peaks.runs import SIMULATED
from calculator.peaks.trace import record
from calculator.plan import Plan
from calculator.resolution import resolve

# the products that occur, as a formula lists them
TERMS: Final = ("N d", "Q", "N h", "B h E", "N")
ROWS: Final = "(sequence rounded up to 32)"
WIDTHS: Final = (("hidden_size",), ("feed_forward_size",), ("heads", "head_size"))
LISTED: Final = {"batch", "sequence", ROWS, *(name for names in WIDTHS for name in names)}


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

    Raises:
        InputError: for a model, or sharing, that leaves fewer than four equal layers in a row: the
            layer in the middle stands between two on each side that may differ from it.
    """
    resolved = resolve(architecture, plan)
    prepared = prepare(architecture, resolved)
    trace = record(prepared.step)
    runs = [run for _, found in prepared.step.runs for run in found]
    full = next((n for n, run in enumerate(runs) if run.is_full), None)
    if full is None:
        rule = f"must be at least {SIMULATED} equal ones in a row, for one in the middle"
        raise InputError("layers", architecture.layers, rule)
    chunk = next(
        chunk
        for chunk in trace.chunks
        if chunk.repeats == (1, full) and chunk.phase is Phase.FORWARD
    )
    terms: Counter[str] = Counter()
    for part, number, count in chunk.net:
        each = trace.sizes[number - 1]
        names = [dimension.name for dimension in each.size.dimensions]
        if part == Part.ACTIVATIONS and _is_of_tokens(names, resolved.batch_size):
            name, factor = _in_hidden_sizes(names, prepared.numbers)
            terms[name] += count * factor * each.size.factor * each.dtype.width
    return dict(sorted(terms.items(), key=lambda term: TERMS.index(term[0])))


def _is_of_tokens(names: Sequence[str], batch_size: int) -> bool:
    """True if a size grows with the sequences and has no factors that a formula omits."""
    scores = "heads" in names and "sequence" in names
    single = batch_size == 1 and (names.count("sequence") == 1 or ROWS in names or scores)
    return ("batch" in names or single) and set(names) <= LISTED


def _in_hidden_sizes(names: list[str], numbers: Numbers) -> tuple[str, int]:
    """The product in letters, every width written as a multiple of d, and that multiple."""
    left = Counter(names)
    left["batch"] = 1  # which one sequence does not name
    if left == {"batch": 1, "sequence": 2, "heads": 1}:
        return "Q", 1
    width = 1
    widths = 0
    for parts in WIDTHS:
        while all(left[part] for part in parts):
            left -= Counter(parts)
            width *= prod(numbers[part] for part in parts)
            widths += 1
    letters = ["B h E" if left[ROWS] else "N h" if left["heads"] else "N", *["d"] * widths]
    return " ".join(letters), width // numbers["hidden_size"] ** widths
