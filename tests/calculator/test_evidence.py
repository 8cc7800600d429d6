"""Evidence for an answer: its state, and errors of others like it."""

import pytest

from calculator.evidence import State, pairs_of, state_of
from tests.calculator.plans import case_of

OWN = [frozenset(), frozenset({"a"}), frozenset({"b"}), frozenset({"c"})]
PAIRS = pairs_of([frozenset({"a", "b"})])


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("", State.MEASURED),
        ("a", State.MEASURED),
        ("ab", State.COMPOSED),
        ("ac", State.ESTIMATED),  # a pair that nobody measured
        ("ad", State.ESTIMATED),  # a technique that this family was not measured with
    ],
)
def test_the_state_follows_from_what_was_measured_together(words: str, state: State) -> None:
    assert state_of(frozenset(words), OWN, PAIRS) is state


def test_the_usual_plan_of_a_family_was_measured() -> None:
    found = case_of("meta-llama/Llama-3.1-8B").report.evidence
    assert found.state is State.MEASURED
    assert found.tries > 0
    assert found.within <= 0.0001  # the bound of every committed row


def test_sizes_change_no_evidence() -> None:
    one, other = (
        case_of("meta-llama/Llama-3.1-8B", f"data_parallel=fsdp {words}").report.evidence
        for words in ("gpus=2", "gpus=64 batch_size=8")
    )
    assert one == other
