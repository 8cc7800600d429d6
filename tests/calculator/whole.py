"""A tape with every layer on it, added up event by event: an oracle for `calculator.peaks`."""

from itertools import accumulate, pairwise

import pytest

from calculator.architecture import Architecture
from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Ledger
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.autograd.tape import Tape
from calculator.estimate import _count, static_of
from calculator.parts import Phase
from calculator.peaks import prepare, runs
from calculator.peaks.step import Step, run_step
from calculator.plan import Plan
from calculator.techniques.pipeline import part_of
from tests.calculator.plans import Case


def whole_tape(case: Case) -> Tape:
    return run_step(whole_step(case))


def whole_step(case: Case) -> Step:
    """The step of a model with no layer left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SIMULATED", 10_000)
        patch.setattr(runs, "SIMULATED_UNITS", 10_000)
        prepare._step.cache_clear()
        found = prepare.prepare(case.architecture, case.resolved)
        assert not any(found.left_out)
    prepare._step.cache_clear()
    return found.step


def numbers_of(case: Case) -> Numbers:
    return prepare.numbers_of(case.architecture, case.resolved)


def peaks_of_gpus(architecture: Architecture, plan: Plan) -> list[int]:
    """Bytes at the peak of every GPU of a resolved plan's pipeline."""
    shapes = [part_of(architecture, plan, rank) for rank in range(plan.pipeline_parallel)]
    return [_count(shape, plan, static_of(shape, plan)[0]).peak for shape in shapes]


def levels_of(ledger: Ledger, case: Case) -> list[int]:
    """Bytes in use before the first event of a tape, and after each."""
    numbers = numbers_of(case)
    sizes = {number: _bytes(*shape, numbers) for shape, number in ledger.sizes.items()}
    changes = (sizes[event] if event > 0 else -sizes[-event] for event in ledger.events)
    return [*accumulate(changes, initial=0)]


def peaks_of(ledger: Ledger, case: Case) -> dict[Phase, int]:
    """Bytes at the peak of each phase of a tape."""
    begins = dict(ledger.phases)
    backward = min(at for at, (stack, _, back) in ledger.marks if stack == "head" and back)
    begins[backward] = Phase.BACKWARD
    peaks: dict[Phase, int] = {}
    phase = Phase.FORWARD
    for at, levels in enumerate(pairwise(levels_of(ledger, case))):
        phase = begins.get(at, phase)
        peaks[phase] = max(peaks.get(phase, 0), *levels)
    return peaks


def _bytes(elements: Size, dtype: DType, numbers: Numbers) -> int:
    return (number_of(elements, numbers) * dtype.width + 511) // 512 * 512
