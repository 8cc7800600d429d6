"""The loss in chunks; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.layers.chunked_loss import tokens_of_chunk
from calculator.plan import Checkpointing, ChunkedLoss, Plan, Precision
from calculator.report import Phase

PLAN = Plan(sequence_length=64, chunked_loss=ChunkedLoss.TORCH)
LLAMA = "meta-llama/Llama-3.1-8B"
TOKENS, VOCABULARY, WIDTH = 4 * 2048, 128_256, 4096  # Llama 3.1's config.json


def test_logits_of_all_tokens_never_exist() -> None:
    plan = replace(PLAN, batch_size=4, sequence_length=2048, precision=Precision.HALF)
    plan = replace(plan, checkpointing=Checkpointing.FULL)
    model = find_model(LLAMA)
    plain = replace(plan, chunked_loss=ChunkedLoss.NONE)
    whole, chunked = (estimate(model, each) for each in (plain, plan))
    # in 32 bits: the logarithm of the softmax, its gradient, and that of the logits
    all_logits = TOKENS * VOCABULARY * (4 + 4 + 4)
    saved = whole.phases[Phase.LOSS].total - chunked.phases[Phase.LOSS].total
    # instead: the gradients of the hidden states and of the output layer, in 16 bits, twice
    gradients = 2 * 2 * (TOKENS + VOCABULARY) * WIDTH
    assert saved == pytest.approx(all_logits - gradients, rel=0.02)
    for report in (whole, chunked):
        assert report.phases[Phase.UPDATE] == whole.phases[Phase.UPDATE]


def test_the_gradient_of_a_frozen_output_layer_is_not_made() -> None:
    plan = replace(PLAN, sequence_length=16, precision=Precision.HALF, lora=8)
    model = find_model(LLAMA)
    trained, frozen = (estimate(model, each) for each in (replace(plan, lora=0), plan))
    table = 2 * VOCABULARY * WIDTH
    kept = [report.phases[Phase.LOSS].activations for report in (trained, frozen)]
    assert kept[0] - kept[1] > 0.8 * table


def test_chunks_are_half_of_what_takes_as_much_as_the_hidden_states() -> None:
    chunk = tokens_of_chunk(TOKENS, VOCABULARY, WIDTH)
    assert chunk == 128  # 8,192 tokens by 32 is 256, a power of two
    assert 2 * chunk * VOCABULARY == pytest.approx(TOKENS * WIDTH, rel=0.03)
    assert [tokens_of_chunk(n, 50_257, 768) for n in (1, 2, 3, 64, 67, 131, 1000)] == [
        *(1, 1, 1, 1),  # 66 rows of the table for each column: one token, halved and at least one
        *(1, 1, 8),  # 2, 2 and 16 tokens, halved
    ]


@pytest.mark.parametrize("model", ["bert-base", "t5-small", "dalle-together"])
def test_a_step_that_leaves_a_setting_out_is_not_counted_as_one_without(model: str) -> None:
    plain = Plan(batch_size=2)
    estimate(find_model(model), plain)  # its recorded step must not answer for the other
    with pytest.raises(InputError, match=r"chunked_loss = 'torch'.*carries it out"):
        estimate(find_model(model), replace(plain, chunked_loss=ChunkedLoss.TORCH))
