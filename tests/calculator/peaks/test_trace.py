from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from calculator.autograd.dtypes import INT64
from calculator.autograd.mode import SEQUENCE, TARGET, Checkpointing
from calculator.autograd.sizes import elements_of, size
from calculator.catalog import find_model
from calculator.estimate import _recorded_parts
from calculator.models.registry import build
from calculator.parameters import parameter_tensors
from calculator.parts import Part, Phase
from calculator.peaks.prepare import mode_of, prepare
from calculator.peaks.trace import record
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.states import statics
from tests.calculator.living import Living, living, living_as
from tests.calculator.plans import Case, cases, examples
from tests.calculator.whole import bytes_of, peaks_of, whole_tape

# models with layers of several kinds in turn, whose units are of two to six layers
IN_TURN = (
    *("google/gemma-2-2b", "google/gemma-3-4b-pt", "google/gemma-4-26B-A4B", "openai/gpt-oss-20b"),
    *(
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "HuggingFaceTB/SmolLM3-3B",
        "answerdotai/ModernBERT-base",
    ),
    "CohereLabs/c4ai-command-r7b-12-2024",
)
IN_TURN_UNDER: tuple[dict[str, object], ...] = (
    {},
    {"checkpointing": "full", "precision": "fp32", "accumulation": 2, "batch_size": 2},
    {"checkpointing": "full", "precision": "half", "attention": "eager", "sequence_length": 70},
    {"update_in_backward": True, "sequence_length": 1000},
)


def inputs(case: Case) -> Living:
    """Token ids and labels, which the training loop holds."""
    mode = mode_of(resolve(case.architecture, case.plan))
    shapes = build(case.architecture, tied=True).inputs(mode)
    return Counter((elements_of(shape), INT64) for shape in shapes)


def bias_between_stacks(case: Case) -> Living:
    """T5's zeros between decoder and encoder, which get a gradient under checkpointing.

    They are no weight, but live as long as the loss does (transformers, modeling_t5.py).
    """
    resolved = resolve(case.architecture, case.plan)
    full = case.plan.checkpointing is Checkpointing.FULL
    if case.architecture.family != "t5" or not full or resolved.reversible:
        return Counter()
    elements = elements_of((size("heads"), TARGET, SEQUENCE))
    return Counter({(elements, mode_of(resolved).arithmetic): 1})


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
    static = case.report.phases[Phase.UPDATE]
    exists = static.gradients if case.plan.accumulation > 1 else 0
    always = static.weights + static.optimizer + exists
    found = {m: memory.total - always for m, memory in case.report.phases.items()}
    del found[Phase.UPDATE]
    tape = whole_tape(case)
    assert found == peaks_of(tape.ledger, case)


@pytest.mark.parametrize(("layers", "others"), [(10, 10), (2, 11), (11, 2)])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_layers_left_out_of_two_stacks_that_share_two_sets_of_weights_hold_no_gradients(
    layers: int, others: int, checkpointing: str
) -> None:
    shape = replace(find_model("t5-small"), layers=layers, decoder_layers=others)
    options = {"sequence_length": 4, "sharing_groups": 2, "checkpointing": checkpointing}
    case = Case(shape, Plan.parse(options))
    static = case.report.phases[Phase.UPDATE]
    always = static.weights + static.optimizer
    found = case.report.phases[Phase.BACKWARD].total - always
    assert found == peaks_of(whole_tape(case).ledger, case)[Phase.BACKWARD]


@pytest.mark.parametrize(
    ("name", "options"),
    [  # every model under two of the plans, every plan for half of the models
        (name, IN_TURN_UNDER[(place + turn) % len(IN_TURN_UNDER)])
        for place, name in enumerate(IN_TURN)
        for turn in range(2)
    ],
    ids=str,
)
def test_a_tape_with_units_of_layers_left_out_has_the_peaks_of_the_whole_one(
    name: str, options: dict[str, object]
) -> None:
    case = Case(find_model(name), Plan.parse(options))
    prepared = prepare(case.architecture, resolve(case.architecture, case.plan))
    units = [run.unit for _, runs in prepared.step.runs for run in runs]
    assert any(unit > 1 and left for unit, left in zip(units, prepared.left_out, strict=True))
    static = case.report.phases[Phase.UPDATE]
    exists = static.gradients if case.plan.accumulation > 1 else 0
    always = static.weights + static.optimizer + exists
    found = {m: memory.total - always for m, memory in case.report.phases.items()}
    del found[Phase.UPDATE]
    tape = whole_tape(case)
    assert found == peaks_of(tape.ledger, case)


@given(cases())
@examples(5)
def test_a_step_of_another_size_is_not_recorded_again(case: Case) -> None:
    _recorded_parts.cache_clear()  # it answers for a step of the same size
    case.but(batch_size=2).report  # noqa: B018
    before = record.cache_info()
    case.but(batch_size=3).report  # noqa: B018
    after = record.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits
