"""Experts divided among several GPUs; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.estimate import estimate, totals, totals_within
from calculator.plan import Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.expert_parallel import with_most_rows

PLAN = Plan(sequence_length=64, precision=Precision.HALF, expert_parallel=4)
MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
# its config.json, and the number of its weights that its index of shards gives
LAYERS, WIDTH, FEED, EXPERTS, CHOSEN, WEIGHTS = 32, 4096, 14_336, 8, 2, 46_702_792_704
DIVIDED = LAYERS * EXPERTS * 3 * FEED * WIDTH


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_experts_are_shares_and_all_else_is_whole(gpus: int) -> None:
    report = estimate(find_model(MIXTRAL), replace(PLAN, expert_parallel=gpus))
    memory = report.phases[Phase.UPDATE]
    held = 2 * (WEIGHTS - DIVIDED + DIVIDED // gpus)  # bytes
    assert memory.gradients == held
    assert memory.optimizer == 2 * held
    assert memory.weights - held < 4096  # and the rotary table
    assert report.parameters == WEIGHTS


def test_the_update_takes_experts_and_the_rest_one_after_the_other() -> None:
    # torch.optim: foreach's square roots are made for each group of parameters
    memory = estimate(find_model(MIXTRAL), PLAN).phases[Phase.UPDATE]
    assert memory.temporaries == 2 * max(WEIGHTS - DIVIDED, DIVIDED // 4)


def test_a_layer_sends_rows_to_experts_and_back_in_both_passes() -> None:
    found = {each.name: each.sizes for each in estimate(find_model(MIXTRAL), PLAN).collectives}
    rows = 64 // 4 * CHOSEN * WIDTH * 2  # bytes: each GPU's tokens, once for each of their experts
    counts = EXPERTS * 8
    assert found["all_to_all"] == (counts, rows, rows) * LAYERS + (rows, rows) * LAYERS
    # the sums are in 32 bits, as the shares are; back come the gradients of shares and tokens
    forward, backward = (64 * WIDTH * 4,), (64 * CHOSEN * 4, 64 * WIDTH * 2)
    assert found["all_gather"] == forward * LAYERS + backward * LAYERS


def test_a_gpu_that_gets_more_rows_needs_more_of_the_step_and_no_more_of_the_rest() -> None:
    model, plan = find_model(MIXTRAL), resolve(find_model(MIXTRAL), PLAN)
    even, most = estimate(model, plan), estimate(with_most_rows(model, plan), plan)
    assert even.phases[Phase.UPDATE] == most.phases[Phase.UPDATE]
    assert even.phases[Phase.FORWARD].activations < most.phases[Phase.FORWARD].activations


def test_no_token_sends_more_rows_than_a_gpu_has_experts() -> None:
    # 8 GPUs have one expert each, of which a token meets two
    model = find_model(MIXTRAL)
    plan = resolve(model, replace(PLAN, expert_parallel=8))
    assert with_most_rows(model, plan).numbers["rows_received"] == 64
    plan = resolve(model, PLAN)
    assert with_most_rows(model, plan).numbers["rows_received"] == 128


def test_the_curve_and_the_totals_of_a_search_end_as_the_report() -> None:
    model = find_model("Qwen/Qwen3-30B-A3B")
    plan = Plan(batch_size=2, sequence_length=96, expert_parallel=8, checkpointing="full")
    whole = estimate(model, plan).gpu.total
    assert curve(model, plan).peak.memory.total == whole
    assert totals(model, plan).gpu == whole
    found = totals_within(model, plan, lambda size: size <= whole)
    assert found is not None
    assert found.gpu == whole
