import pytest
from hypothesis import given

from calculator.estimate import totals, totals_within
from calculator.peaks.prepare import prepare
from calculator.peaks.step import begin, finish
from calculator.peaks.trace import _after_forward, _known, bytes_after_forward, record, tentatively
from tests.calculator.plans import Case, case_of, cases, examples
from tests.calculator.whole import levels_of, whole_step

# units of one layer and of several, experts, linear attention, shards, adapters
NAMES = (
    *("google/gemma-3-4b-pt", "google/gemma-4-E2B", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    *("openai/gpt-oss-20b", "meta-llama/Llama-3.2-1B", "Qwen/Qwen3-8B"),
)
OPTIONS: tuple[dict[str, object], ...] = (
    {"batch_size": 2},
    {"checkpointing": "full", "precision": "half", "sequence_length": 70},
)


def forget() -> None:
    for cache in (record, _known, _after_forward):
        cache.cache_clear()


def after_forward(case: Case) -> int:
    """Bytes that live after the forward pass, of a step that is not recorded."""
    forget()
    found = prepare(case.architecture, case.resolved)
    with tentatively():
        return bytes_after_forward(found.step, found.numbers, found.left_out)


def whole_after_forward(case: Case) -> int:
    """The same of a tape with every layer on it."""
    begun = begin(whole_step(case))  # what it holds dies with it
    return levels_of(begun.tape.ledger, case)[-1]


@given(cases())
@examples(12)
def test_the_forward_pass_with_layers_left_out_leaves_what_the_whole_one_leaves(case: Case) -> None:
    assert after_forward(case) == whole_after_forward(case)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_units_of_layers_leave_what_the_whole_model_leaves(
    name: str, options: dict[str, object]
) -> None:
    case = case_of(name, **{"sequence_length": 512, **options})
    assert after_forward(case) == whole_after_forward(case)


@given(cases())
@examples(12)
def test_a_step_that_was_begun_for_a_bound_ends_with_the_same_peak(case: Case) -> None:
    forget()
    expected = totals(case.architecture, case.plan)
    forget()
    found = [
        totals_within(case.architecture, case.plan, (expected.gpu - less).__ge__)
        for less in (expected.gpu, 1, 0)
    ]
    assert found[0] is None
    assert found[2] == expected
    assert found[1] in (None, expected)


def test_a_step_is_finished_once() -> None:
    case = case_of("gpt2-s")
    begun = begin(prepare(case.architecture, case.resolved).step)
    finish(begun)
    with pytest.raises(AssertionError, match="finished before"):
        finish(begun)
