from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import MODELS, find_model
from calculator.plan import LARGEST_BATCH, Plan
from calculator.planner.largest import _Bracket, _largest, largest_batch, longest_sequence
from calculator.planner.need import Verdict, judged, need_of
from calculator.units import GiB
from tests.calculator.plans import Case, cases, examples, options_of

memories = st.integers(1, 96).map(lambda size: size * GiB)


def verdict_of(case: Case, memory: int) -> Verdict:
    return need_of(judged(case.architecture, case.plan)).verdict(memory)


@examples(6)
@given(cases(), memories)
def test_the_largest_batch_fits_and_one_more_does_not(case: Case, memory: int) -> None:
    most = largest_batch(case.architecture, case.plan, memory)
    if most != LARGEST_BATCH:  # no plan has a larger one
        assert verdict_of(case.but(batch_size=(most or 0) + 1), memory) is not Verdict.FITS
    if most is not None:
        assert verdict_of(case.but(batch_size=most), memory) is Verdict.FITS


@pytest.mark.parametrize(
    ("model", "gigabytes"), [("gpt2-s", 4), ("bert-base", 24), ("t5-base", 80), ("gpt-j-6b", 24)]
)
def test_the_longest_sequence_fits(model: str, gigabytes: int) -> None:
    architecture, memory = MODELS[model], gigabytes * GiB
    longest = longest_sequence(architecture, Plan(), memory)
    if longest is None:
        assert verdict_of(Case(architecture, Plan(sequence_length=1)), memory) is not Verdict.FITS
        return
    assert verdict_of(Case(architecture, Plan(sequence_length=longest)), memory) is Verdict.FITS


def test_the_longest_sequence_with_the_loss_in_chunks_which_one_token_has_not() -> None:
    plan = Plan.parse({"precision": "half", "chunked_loss": "torch"})
    case, memory = Case(find_model("Qwen/Qwen3-0.6B"), plan), 8 * GiB
    longest = longest_sequence(case.architecture, plan, memory)
    assert verdict_of(case.but(sequence_length=longest), memory) is Verdict.FITS
    assert verdict_of(case.but(sequence_length=longest + 1), memory) is not Verdict.FITS


def found(needs: Callable[[int], int | None], own: int, most: int, memory: int) -> tuple[int, int]:
    """The value that the search finds, 0 for none, and how many it looked at."""
    looked = 0

    def need_at(value: int) -> int | None:
        nonlocal looked
        looked += 1
        return needs(value)

    search = _largest(need_at, own, _Bracket(memory, most, most + 1, first=1))
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value or 0, looked


@st.composite
def bent(draw: st.DrawFn) -> Callable[[int], int | None]:
    """A need that grows along straight lines, and perhaps ends where values are refused."""
    lines = st.tuples(st.integers(0, 1000), st.integers(0, 50))
    drawn = draw(st.lists(lines, min_size=1, max_size=4))
    end = draw(st.none() | st.integers(1, 3000))

    def need_at(value: int) -> int | None:
        if end is not None and value > end:
            return None
        return max(base + slope * value for base, slope in drawn)

    return need_at


@examples(200)
@given(bent(), st.integers(1, 3000), st.integers(0, 2000), st.integers(0, 20_000))
def test_the_search_finds_the_last_value_that_fits(
    needs: Callable[[int], int | None], own: int, more: int, memory: int
) -> None:
    most = own + more
    fits = [
        value
        for value in range(1, most + 1)
        if (need := needs(value)) is not None
        if need <= memory
    ]
    largest, looked = found(needs, own, most, memory)
    assert largest == max(fits, default=0)
    assert looked <= 50


LLAMA = "meta-llama/Llama-3.2-1B"


@pytest.mark.parametrize(
    ("model", "options", "step"),
    [
        (LLAMA, "gpus=8 data_parallel=fsdp precision=mixed context_parallel=8", 16),
        (LLAMA, "tensor_parallel=8 sequence_parallel=True precision=half", 8),
        ("mistralai/Mixtral-8x7B-v0.1", "expert_parallel=8 precision=half", 8),
    ],
)
def test_gpus_that_divide_tokens_evenly_take_the_longest_multiple(
    model: str, options: str, step: int
) -> None:
    architecture = find_model(model)
    plan = Plan.parse(options_of(f"{options} sequence_length=1024"))
    memory = need_of(judged(architecture, plan.but(sequence_length=5 * 1024))).high
    longest = longest_sequence(architecture, plan, memory)
    assert longest % step == 0
    longer = plan.but(sequence_length=longest + step)
    assert verdict_of(Case(architecture, longer), memory) is not Verdict.FITS
