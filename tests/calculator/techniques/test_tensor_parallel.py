"""Layers split over several GPUs; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve

PLAN = Plan(sequence_length=64, precision=Precision.HALF, tensor_parallel=4)
LLAMA = "meta-llama/Llama-3.1-8B"
# its config.json
LAYERS, WIDTH, HEADS, KEYS, HEAD, FEED, WORDS = 32, 4096, 32, 8, 128, 14_336, 128_256
WHOLE = 2 * WORDS * WIDTH + (2 * LAYERS + 1) * WIDTH  # both tables, and norms
SPLIT = LAYERS * ((2 * HEADS + 2 * KEYS) * HEAD * WIDTH + 3 * FEED * WIDTH)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_weights_gradients_and_states_are_shares_of_layers_and_all_else_whole(gpus: int) -> None:
    report = estimate(find_model(LLAMA), replace(PLAN, tensor_parallel=gpus))
    memory = report.phases[Phase.UPDATE]
    held = 2 * (WHOLE + SPLIT // gpus)  # bytes
    assert memory.gradients == held
    assert memory.optimizer == 2 * held
    assert memory.weights - held < 4096  # and the rotary table
    assert report.parameters == WHOLE + SPLIT == 8_030_261_248


def test_the_update_takes_one_group_of_weights_at_a_time() -> None:
    # torch.optim: foreach's square roots are made for each group of parameters
    memory = estimate(find_model(LLAMA), PLAN).phases[Phase.UPDATE]
    assert memory.temporaries == 2 * max(WHOLE, SPLIT // 4)


def test_each_layer_sums_its_halves_forward_and_five_inputs_backward() -> None:
    model = find_model(LLAMA)
    tokens = 64 * WIDTH
    (half,) = estimate(model, PLAN).collectives
    assert half.sizes == (2 * tokens,) * 7 * LAYERS
    # under autocast the gradient of a layer's input is widened before it is summed
    (mixed,) = estimate(model, replace(PLAN, precision=Precision.AMP)).collectives
    assert mixed.sizes == (2 * tokens,) * 2 * LAYERS + (4 * tokens,) * 5 * LAYERS
    # attention's half is computed again, and stops before the sum of the other
    (again,) = estimate(model, replace(PLAN, checkpointing="full", accumulation=3)).collectives
    assert again.sizes == (2 * tokens,) * 8 * LAYERS * 3


def test_one_of_two_heads_of_keys_is_seen_by_all_and_not_copied() -> None:
    model = find_model("Qwen/Qwen2.5-0.5B")
    plan = Plan(sequence_length=96, attention="eager", tensor_parallel=2)
    alone = estimate(model, replace(plan, tensor_parallel=1))
    assert estimate(model, plan).gpu.total < alone.gpu.total


IN_PARTS = replace(PLAN, sequence_parallel=True)


def test_of_split_tokens_nothing_but_the_stream_between_products_is_less() -> None:
    model = find_model(LLAMA)
    parts, whole = (estimate(model, plan).phases for plan in (IN_PARTS, PLAN))
    for name in ("weights", "gradients", "optimizer"):
        assert getattr(parts[Phase.UPDATE], name) == getattr(whole[Phase.UPDATE], name)
    assert parts[Phase.LOSS].activations < whole[Phase.LOSS].activations


def test_each_half_of_a_layer_gathers_all_tokens_and_scatters_their_sum() -> None:
    # 2 halves forward and backward, and the embeddings' gradient and the output layer's input
    found = {each.name: each.sizes for each in estimate(find_model(LLAMA), IN_PARTS).collectives}
    tokens = 2 * 64 * WIDTH
    assert found["all_gather"] == (tokens,) * (4 * LAYERS + 2)
    assert found["reduce_scatter"] == (tokens,) * 4 * LAYERS


def test_the_norms_of_split_tokens_are_updated_with_what_is_split() -> None:
    memory = estimate(find_model(LLAMA), IN_PARTS).phases[Phase.UPDATE]
    norms = (2 * LAYERS + 1) * WIDTH
    assert memory.temporaries == 2 * max(WHOLE - norms, SPLIT // 4 + norms)


def test_all_gpus_of_a_run_are_the_product_of_what_divides_it() -> None:
    model = find_model("meta-llama/Llama-3.1-8B")
    left_out, all_given = (
        estimate(model, Plan(tensor_parallel=4, gpus=gpus, precision=Precision.HALF)).gpu.total
        for gpus in (1, 4)
    )
    assert left_out == all_given
    with pytest.raises(InputError, match=r"gpus = '6': 4 GPUs share the model.*multiple of 4"):
        resolve(model, Plan(tensor_parallel=4, gpus=6))
