from collections import Counter

from hypothesis import given

from calculator.architecture import Family
from calculator.families.programs import input_shapes
from calculator.ledger import Moment, Part
from calculator.parameters import parameter_tensors
from calculator.states import statics
from calculator.techniques import Checkpointing, resolve
from calculator.trace import parse_size, record
from tests.calculator.living import Living, living, living_as
from tests.calculator.peaks import bytes_of, peaks_of, whole_tape
from tests.calculator.plans import Case, cases, examples


def inputs(case: Case) -> Living:
    """Token ids and labels, which the training loop holds."""
    return Counter((elements, 8) for elements in input_shapes(case.architecture.family))


def bias_between_stacks(case: Case) -> Living:
    """T5's zeros between decoder and encoder, which get a gradient under checkpointing.

    They are no weight, but live as long as the loss does (transformers, modeling_t5.py).
    """
    resolved = resolve(case.architecture, case.plan)
    full = case.plan.checkpointing is Checkpointing.FULL
    if case.architecture.family is not Family.T5 or not full or resolved.reversible:
        return Counter()
    return Counter({("h*T*S", resolved.arithmetic_bytes): 1})


def test_a_symbolic_size_is_a_number_times_symbols() -> None:
    size = parse_size("3*N*2*d", 2)
    assert (size.factor, size.symbols, size.item, size.run) == (6, ("N", "d"), 2, None)
    assert parse_size("1", 4).symbols == ()


@given(cases())
@examples(10)
def test_after_a_step_only_inputs_and_gradients_live(case: Case) -> None:
    tape = whole_tape(case)  # held, for what it holds lives
    ledger = tape.ledger
    gradients = living_as(ledger, Part.GRADIENTS)
    bias_and_its_gradient = bias_between_stacks(case) + bias_between_stacks(case)
    assert living(ledger) == gradients + inputs(case) + bias_and_its_gradient
    assert living_as(ledger, Part.ACTIVATIONS) - inputs(case) <= bias_between_stacks(case)


@given(cases(accumulation=1))
@examples(10)
def test_the_programs_have_the_weights_that_are_counted(case: Case) -> None:
    resolved = resolve(case.architecture, case.plan)
    counted = statics(parameter_tensors(case.architecture, resolved), 0, resolved).gradients
    tape = whole_tape(case)
    made = living_as(tape.ledger, Part.GRADIENTS)
    assert bytes_of(made, case) == counted


@given(cases(accumulation=2))
@examples(6)
def test_later_micro_steps_add_to_the_gradients_that_exist(case: Case) -> None:
    tape = whole_tape(case)
    assert not living_as(tape.ledger, Part.GRADIENTS)


@given(cases())
@examples(6)
def test_each_byte_belongs_to_one_part(case: Case) -> None:
    tape = whole_tape(case)
    ledger = tape.ledger
    by_part: Living = Counter()
    for part in Part:
        by_part += living_as(ledger, part)
    assert by_part == living(ledger)


@given(cases())
@examples(12)
def test_a_tape_with_layers_left_out_has_the_peaks_of_the_whole_one(case: Case) -> None:
    static = case.report.moments[Moment.UPDATE]
    exists = static.gradients if case.plan.accumulation > 1 else 0
    always = static.weights + static.optimizer + exists
    found = {m: memory.total - always for m, memory in case.report.moments.items()}
    del found[Moment.UPDATE]
    tape = whole_tape(case)
    assert found == peaks_of(tape.ledger, case)


@given(cases())
@examples(5)
def test_a_recorded_step_is_recorded_once(case: Case) -> None:
    case.report  # noqa: B018
    before = record.cache_info()
    case.report  # noqa: B018
    after = record.cache_info()
    assert after.misses == before.misses
    assert after.hits == before.hits + 1
