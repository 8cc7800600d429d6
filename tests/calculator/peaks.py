"""A tape with every layer on it, added up event by event: an oracle for trace and timeline."""

from collections.abc import Mapping
from math import prod

import pytest

from calculator import trace
from calculator.families import programs, structure
from calculator.families.sizes import structure_of, symbols_of
from calculator.ledger import Ledger, Moment
from calculator.tape import Tape
from calculator.techniques import resolve
from tests.calculator.living import Living
from tests.calculator.plans import Case


def whole_tape(case: Case) -> Tape:
    """The step of a model with no layer left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "SIMULATED", 10_000)
        patch.setattr(trace, "SIMULATED", 10_000)
        shape, left_out = structure_of(case.architecture, resolve(case.architecture, case.plan))
        assert not any(left_out)
        tape = Tape(shape.weight_item, shape.autocast_item, shape.gradients_exist)
        programs.step(tape, shape)
    return tape


def symbols(case: Case) -> dict[str, int]:
    """Elements for each symbol."""
    return symbols_of(case.architecture, resolve(case.architecture, case.plan))


def bytes_of(found: Living, case: Case) -> int:
    """What lives, in bytes; each tensor takes whole blocks of 512."""
    numbers = symbols(case)
    return sum(count * _bytes(*shape, numbers) for shape, count in found.items())


def peaks_of(ledger: Ledger, case: Case) -> dict[Moment, int]:
    """Bytes at the peak of each moment of a tape."""
    numbers = symbols(case)
    sizes = {number: _bytes(*shape, numbers) for shape, number in ledger.sizes.items()}
    begins = dict(ledger.moments)
    backward = min(at for at, (stack, _, back) in ledger.marks if stack == "head" and back)
    begins[backward] = Moment.BACKWARD
    peaks: dict[Moment, int] = {}
    moment, total = Moment.FORWARD, 0
    for at, event in enumerate(ledger.events):
        moment = begins.get(at, moment)
        peaks[moment] = max(peaks.get(moment, 0), total)
        total += sizes[event] if event > 0 else -sizes[-event]
        peaks[moment] = max(peaks[moment], total)
    return peaks


def _bytes(elements: str, item: int, numbers: Mapping[str, int]) -> int:
    factors = [int(name) if name.isdecimal() else numbers[name] for name in elements.split("*")]
    return (prod(factors) * item + 511) // 512 * 512
