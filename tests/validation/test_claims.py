"""Published figures that the planner reproduces; where each is printed stands beside it."""

from collections import Counter

import pytest

from validation.claims import computing, energy, exchanging, scaling
from validation.claims.claim import Claim, Outcome, Topic, outcomes

SAME, CUT, CLOSE, OTHER = Outcome.SAME, Outcome.CUT, Outcome.CLOSE, Outcome.OTHER


def off(topic: Topic) -> dict[str, Outcome]:
    """The figures of a topic that are not ours to the printed digit."""
    return {claim.words: claim.outcome for claim in topic.claims if claim.outcome is not SAME}


def test_sizes_shares_training_days_and_utilizations_are_reproduced() -> None:
    assert len(computing.NARAYANAN) == 10
    assert off(computing.narayanan_sizes()) == {}
    days = computing.narayanan_days()
    assert len(days.claims) == 12
    assert OTHER not in off(days).values()  # within one
    shares = computing.llm_foundry()
    assert len(shares.claims) > 2 * 200
    assert max(abs(claim.difference) for claim in shares.claims) < 0.05


def test_the_impossible_runs_of_a_survey_are_found_and_no_others() -> None:
    impossible = {run.words for run in computing.SURVEY if run.share is None}
    assert impossible == {"LaMDA, TPU v3", "FLM, A800"}
    assert all(run.needed > 1 for run in computing.SURVEY if run.words in impossible)
    shown = [cells[0] for cells in computing.survey().shown if Outcome.IMPOSSIBLE in cells[-1]]
    assert {words.partition(":")[0] for words in shown} == impossible


def test_energy_and_carbon_of_llama_1_and_2_but_one_energy_and_a_rounded_rate() -> None:
    assert off(energy.llama_1()) == {
        "BLOOM-175B, 1,082,880 hours": OTHER,
        "LLaMA 65B, 1,022,362 hours": CUT,
        "the same in GPU hours": OTHER,
    }
    assert Counter(off(energy.llama_2()).values()) == {CUT: 2}


def test_odds_of_a_failing_gpu_in_every_convention() -> None:
    # facts of the same article: 8% a month; what each convention gives for 512 and 1,024 GPUs
    expected = [74.95, 93.73, 74.52, 93.51, 75.90, 94.19, 75.43, 93.96]
    odds = [claim.ours for claim in energy.failures().claims[: len(expected)]]
    assert odds == pytest.approx(expected, abs=0.01)


def test_where_the_article_errs() -> None:
    assert [words for words, outcome in off(energy.failures()).items() if outcome is OTHER] == [
        "saved by one point more utilization than 43.47%",
        "291 t of CO2 in people of the US at 16.1 t a year",
    ]


def test_the_counts_of_cerebras_gpt_are_exact() -> None:
    # transformers' GPT2LMHeadModel with these shapes
    counts = [111_050_496, 255_977_024, 590_310_912, 1_315_723_264, 2_651_553_280]
    counts += [6_658_404_352, 12_853_386_240]
    assert [model.parameters for model in scaling.CEREBRAS] == counts


def test_the_seven_of_cerebras_their_tokens_and_within_one_percent_their_losses() -> None:
    found = off(scaling.cerebras())
    losses = {words: found.pop(words) for words in list(found) if "loss" in words}
    assert set(losses.values()) == {CLOSE}
    assert len(losses) == 7
    assert found == {"111M, warm-up of 375M tokens": CLOSE, "256M, warm-up of 375M tokens": OTHER}


def test_what_runs_over_the_internet_printed() -> None:
    assert off(exchanging.intellect()) == {}
    assert off(exchanging.covenant()) == {"an exchange at those rates": OTHER}
    assert outcomes([exchanging.together()]) == {SAME: 1, CUT: 1}


@pytest.mark.parametrize(
    ("published", "ours", "outcome"),
    [
        *(("2.5", 2.5499, SAME), ("2.5", 2.4501, SAME), ("2.5", 2.59, CUT), ("3", 3.4, SAME)),
        *(("2.5", 2.7, CLOSE), ("2.5", 2.3, CLOSE), ("2.5", 2.9, OTHER)),
    ],
)
def test_an_outcome_follows_from_the_printed_digits(
    published: str, ours: float, outcome: Outcome
) -> None:
    claim = Claim("a figure", published, ours, margin=0.3)
    assert claim.outcome is outcome
    assert claim.verdict.startswith(outcome.value)
