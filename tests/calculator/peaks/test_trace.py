from dataclasses import replace
from weakref import ref

import pytest
from hypothesis import given

from calculator.catalog import find_model
from calculator.estimate import _recorded_parts
from calculator.parts import Phase
from calculator.peaks.prepare import prepare
from calculator.peaks.trace import no_collection, record, tape_of
from calculator.plan import Plan
from tests.calculator.plans import Case, case_of, cases, examples
from tests.calculator.whole import peaks_of, whole_tape

# models with layers of several kinds in turn, whose units are of two to six layers
IN_TURN: list[tuple[str, dict[str, object]]] = [
    ("google/gemma-2-2b", {}),
    ("google/gemma-3-4b-pt", {"checkpointing": "full", "precision": "fp32", "accumulation": 2}),
    ("google/gemma-4-26B-A4B", {"checkpointing": "full", "precision": "half", "batch_size": 2}),
    ("openai/gpt-oss-20b", {"update_in_backward": True, "sequence_length": 1000}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", {}),
    ("HuggingFaceTB/SmolLM3-3B", {"checkpointing": "full", "attention": "eager"}),
    ("answerdotai/ModernBERT-base", {"checkpointing": "full", "sequence_length": 70}),
    ("CohereLabs/c4ai-command-r7b-12-2024", {"update_in_backward": True}),
]
OPERATIONS = {"checkpointing": "operations", "precision": "half"}
# of 30 layers, and as many in a decoder
DEEP: list[tuple[str, dict[str, object]]] = [
    *(("gpt2-s", {"checkpointing": "full", "checkpoint_every": every}) for every in (2, 5, 11)),
    *(("t5-small", {"checkpointing": "full", "checkpoint_every": every}) for every in (3, 7)),
    ("t5-small", {"sharing_groups": 2, "checkpointing": "full"}),
    ("google/gemma-3-270m", {"checkpointing": "full", "checkpoint_every": 4}),
    ("gpt2-s", {**OPERATIONS, "checkpoint_every": 3}),
    ("google/gemma-3-270m", {**OPERATIONS, "lora": 8, "lora_targets": "all-linear"}),
    ("Qwen/Qwen2.5-0.5B", {**OPERATIONS, "precision": "amp", "accumulation": 2}),
]


def check(case: Case) -> None:
    """Leaving layers off the tape does not change the peaks of a step."""
    static = case.report.phases[Phase.UPDATE]
    exists = static.gradients if case.plan.accumulation > 1 else 0
    always = static.weights + static.optimizer + exists
    found = {phase: memory.total - always for phase, memory in case.report.phases.items()}
    del found[Phase.UPDATE]
    assert found == peaks_of(whole_tape(case).ledger, case)


@given(cases())
@examples(12)
def test_a_tape_with_layers_left_out_has_the_peaks_of_the_whole_one(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(("name", "options"), DEEP, ids=str)
def test_so_it_has_with_checkpoints_of_some_layers_or_results(
    name: str, options: dict[str, object]
) -> None:
    model = find_model(name)
    model = replace(model, layers=30, decoder_layers=17 if model.decoder_layers else 0)
    check(Case(model, Plan.parse({"batch_size": 2, "sequence_length": 96, **options})))


@pytest.mark.parametrize(("layers", "others"), [(10, 10), (2, 11), (11, 2)])
def test_layers_left_out_of_two_stacks_that_share_two_sets_of_weights_hold_no_gradients(
    layers: int, others: int
) -> None:
    shape = replace(find_model("t5-small"), layers=layers, decoder_layers=others)
    check(Case(shape, Plan.parse({"sequence_length": 4, "sharing_groups": 2})))


@pytest.mark.parametrize(("name", "options"), IN_TURN, ids=str)
def test_units_of_layers_are_left_out_too(name: str, options: dict[str, object]) -> None:
    case = case_of(name, **options)
    prepared = prepare(case.architecture, case.resolved)
    units = [run.unit for _, runs in prepared.step.runs for run in runs]
    assert any(unit > 1 and left for unit, left in zip(units, prepared.left_out, strict=True))
    check(case)


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


def test_a_tape_that_is_dropped_is_gone_without_a_search() -> None:
    case = case_of("gpt2-s", "lora=4")
    with no_collection():
        tape = tape_of(prepare(case.architecture, case.resolved).step)
        gone = ref(tape)
        tape.drop()
        del tape
        assert gone() is None
