from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.plan import LARGEST_BATCH
from calculator.planner.largest import _Bracket, _largest, end_of, largest_batch, longest_sequence
from calculator.units import GiB
from tests.calculator.plans import Case, case_of, cases, examples

memories = st.integers(1, 96).map(lambda size: size * GiB)


@examples(6)
@given(cases(), memories)
def test_the_largest_batch_fits_and_one_more_does_not(case: Case, memory: int) -> None:
    most = largest_batch(case.architecture, case.plan, memory)
    if most != LARGEST_BATCH:  # no plan has a larger one
        assert not case.but(batch_size=(most or 0) + 1).need.fits(memory)
    if most is not None:
        assert case.but(batch_size=most).need.fits(memory)


LLAMA = "meta-llama/Llama-3.2-1B"


@pytest.mark.parametrize(
    ("model", "options", "gigabytes", "step"),
    [
        *(("gpt2-s", "", 4, 1), ("bert-base", "", 24, 1), ("t5-base", "", 80, 1)),
        ("gpt-j-6b", "", 24, 1),  # none
        # whose chunks one token has not
        ("Qwen/Qwen3-0.6B", "precision=half chunked_loss=torch", 8, 1),
        # GPUs divide the tokens evenly
        (LLAMA, "gpus=8 data_parallel=fsdp precision=mixed context_parallel=8", 9, 16),
        (LLAMA, "tensor_parallel=8 sequence_parallel=True precision=half", 9, 8),
        ("mistralai/Mixtral-8x7B-v0.1", "expert_parallel=8 precision=half", 99, 8),
    ],
)
def test_the_longest_sequence_fits_and_a_longer_one_does_not(
    model: str, options: str, gigabytes: int, step: int
) -> None:
    case, memory = case_of(model, options), gigabytes * GiB
    longest = longest_sequence(case.architecture, case.plan, memory)
    if longest is not None:
        assert longest % step == 0
        assert case.but(sequence_length=longest).need.fits(memory)
    if longest != case.architecture.positions:
        assert not case.but(sequence_length=(longest or 0) + step).need.fits(memory)


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
    looked: list[int] = []

    def need_at(value: int) -> int | None:
        looked.append(value)
        return needs(value)

    search = _largest(need_at, own, _Bracket(memory, most, most + 1, first=1))
    assert (end_of(search) or 0) == max(fits, default=0)
    assert len(looked) <= 50
