"""Work of a step: the FLOPs that formulas give, and what recomputation and micro-batches add."""

import pytest

from calculator.catalog import find_model
from calculator.clock import Work, work_of
from calculator.errors import InputError
from calculator.plan import Plan

# GPT-2's smallest model: layers, width, vocabulary (its config.json)
LAYERS, WIDTH, VOCABULARY = 12, 768, 50_257
LENGTH = 512
BATCH = 2
TOKENS = BATCH * LENGTH


def work(**options: str) -> Work:
    values = {
        "precision": "half",
        "attention": "eager",
        "batch_size": str(BATCH),
        "sequence_length": str(LENGTH),
    }
    return work_of(find_model("gpt2"), Plan.parse(values | options))


def test_products_take_6_flops_per_parameter_and_12_l_d_s_for_attention() -> None:
    # llm-foundry (scripts/train/benchmarking): 6 N + 12 l d s per token; embeddings are looked up
    parameters = 12 * LAYERS * WIDTH**2 + VOCABULARY * WIDTH
    assert work().narrow == TOKENS * (6 * parameters + 12 * LAYERS * WIDTH * LENGTH)


def test_flash_attention_has_7_products_where_eager_code_has_6() -> None:
    # FlashAttention's backward pass has 5 products, one of which recomputes the scores
    assert work(attention="flash").narrow_attention == 14 * TOKENS * LAYERS * WIDTH * LENGTH


def test_checkpointing_repeats_the_layers_forward_pass_up_to_the_last_kept_tensor() -> None:
    layer = 2 * 12 * WIDTH**2 + 4 * WIDTH * LENGTH
    last_product = 2 * 4 * WIDTH**2  # nobody needs its output
    without = work(dropout="0")
    more = work(dropout="0", checkpointing="full").narrow - without.narrow
    assert more == TOKENS * LAYERS * (layer - last_product)


def test_micro_batches_add_up() -> None:
    assert work(accumulation="3").narrow == 3 * work().narrow


def test_weights_in_4_bits_need_no_gradient_of_their_own() -> None:
    packed = work(quantization="nf4", lora="8", precision="fp32").packed_wide
    # forward and the input's gradient: 4 FLOPs for each of the layers' parameters; what the first
    # product of all reads is frozen, too, so its 3 d^2 parameters have the forward pass alone
    assert packed == TOKENS * (4 * 12 * LAYERS - 2 * 3) * WIDTH**2


@pytest.mark.parametrize("field", ["tensor_parallel", "pipeline_parallel"])
def test_what_the_clock_leaves_out_is_refused(field: str) -> None:
    with pytest.raises(InputError, match=field):
        work(**{field: "2", "gpus": "2", "accumulation": "2"})
