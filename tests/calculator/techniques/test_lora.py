"""LoRA: what is trained and what a frozen weight keeps; 89 measured rows hold the sizes."""

from dataclasses import replace

import pytest

from calculator.autograd import operations as op
from calculator.autograd.backward import backward
from calculator.autograd.dtypes import FLOAT16, FLOAT32
from calculator.autograd.graph import Parameter
from calculator.autograd.mode import Mode
from calculator.autograd.sizes import size
from calculator.autograd.tape import Tape
from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.parameters import parameter_tensors
from calculator.parts import Part
from calculator.plan import Checkpointing, LoraBias, Offload, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from tests.calculator.living import living_as

N, D, F = size("tokens"), size("d"), size("f")

# bigscience/mt0-large, of which peft's guide prints: trainable params: 2359296 || all params:
# 1231940608, for r=8
MT0_LARGE = {
    "model_type": "mt5",
    "d_model": 1024,
    "d_ff": 2816,
    "d_kv": 64,
    "num_heads": 16,
    "num_layers": 24,
    "num_decoder_layers": 24,
    "vocab_size": 250_112,
    "feed_forward_proj": "gated-gelu",
}


def test_as_many_weights_are_trained_as_peft_prints() -> None:
    report = estimate(from_config(MT0_LARGE, "mt0-large"), Plan(lora=8, sequence_length=32))
    assert report.trainable_parameters == 2_359_296
    # the class of then had an output layer of its own, which today's ties
    assert report.parameters == 1_231_940_608 - 250_112 * 1024


def test_gradients_and_states_are_those_of_the_adapters_alone_in_32_bits() -> None:
    plan = Plan(lora=8, precision=Precision.HALF, sequence_length=64)
    report = estimate(find_model("HuggingFaceTB/SmolLM2-135M"), plan)
    update = report.phases[Phase.UPDATE]
    # 30 layers with rank 8 beside queries (576 to 576) and values (576 to 192)
    trained = 30 * 8 * (576 + 576 + 576 + 192)
    assert report.trainable_parameters == trained
    assert (update.gradients, update.optimizer) == (4 * trained, 8 * trained)


def test_a_product_by_a_frozen_weight_keeps_nothing_of_its_input() -> None:
    t = Tape(Mode())
    trained, frozen = Parameter((D, D)), Parameter((F, D), trained=False)
    hidden = op.gelu(op.linear(t.empty((N, D), FLOAT32), t.weight(trained)))
    out = op.linear(hidden, t.weight(frozen))
    del hidden
    # the first product's input and GELU's; not GELU's result, which only a weight's gradient needs
    assert living_as(t.ledger, Part.ACTIVATIONS) == {(N * D, FLOAT32): 2}
    backward([out], [t.like(out)])
    assert t.weight(trained).gradient is not None


def test_autocast_copies_a_frozen_weight_for_each_use() -> None:
    t = Tape(Mode(FLOAT32, FLOAT16))
    for trained in (True, False):
        weight = t.weight(Parameter((D, F), trained))
        first, second = t.lower(weight), t.lower(weight)
        assert (first.storage is second.storage) is trained


@pytest.mark.parametrize(
    ("targets", "means"),
    [(None, "q_proj,v_proj"), ("all-linear", "all-linear"), ("self_attn.q_proj up_proj", None)],
)
def test_targets_are_read_as_peft_reads_them(targets: str | None, means: str | None) -> None:
    model = find_model("HuggingFaceTB/SmolLM2-135M")
    plan = Plan(lora=4, lora_targets=targets)  # type: ignore[arg-type]
    if means is None:
        with pytest.raises(InputError, match=r"lora_targets = 'self_attn.q_proj'.*gate_proj"):
            resolve(model, plan)
    else:
        assert resolve(model, plan).lora_targets == means


@pytest.mark.parametrize(
    ("targets", "elements"),
    [
        # of peft 0.21.2's named_parameters of Mixtral 8x7B with r = 4, target by target
        ("gate", 32 * 4 * (4096 + 8)),
        ("w1,w3", 32 * 8 * 8 * (4096 + 2 * 14_336)),
        ("w2", 32 * 8 * 4 * (14_336 + 4096)),
    ],
)
def test_fused_experts_have_a_pair_of_factors_each(targets: str, elements: int) -> None:
    mixtral = find_model("mistralai/Mixtral-8x7B-v0.1")
    plan = resolve(mixtral, Plan(lora=4, lora_targets=targets))
    trained = [each for each in parameter_tensors(mixtral, plan) if each.trained]
    assert sum(each.elements * each.copies for each in trained) == elements


def test_without_a_rank_targets_and_dropout_mean_nothing() -> None:
    gpt2 = find_model("gpt2-s")
    plan = Plan(lora_targets="no.such", lora_dropout=0.5)
    assert resolve(gpt2, plan) == resolve(gpt2, Plan())


def test_a_larger_rank_never_needs_less_and_offload_moves_adapters_alone() -> None:
    model = find_model("Qwen/Qwen3-0.6B")
    plan = Plan(lora=8, sequence_length=64, checkpointing=Checkpointing.FULL)
    small, large = (estimate(model, replace(plan, lora=rank)) for rank in (8, 64))
    assert small.gpu.total < large.gpu.total
    offloaded = estimate(model, replace(plan, offload=Offload.OPTIMIZER))
    assert offloaded.to_ram == offloaded.to_gpu == 4 * small.trainable_parameters


def test_biases_are_trained_beside_the_adapters_in_the_weights_format() -> None:
    model = find_model("gpt2-s")
    plan = Plan(lora=8, lora_targets="c_attn", sequence_length=64, precision=Precision.HALF)
    none, only, every = (
        estimate(model, replace(plan, lora_bias=bias))
        for bias in (LoraBias.NONE, LoraBias.LORA_ONLY, LoraBias.ALL)
    )
    # 12 layers of 768: biases of queries, keys and values; the other products', and the norms'
    attention, others = 3 * 768, 768 + 4 * 768 + 768 + 2 * 768
    assert only.trainable_parameters - none.trainable_parameters == 12 * attention
    assert every.trainable_parameters - none.trainable_parameters == 12 * (attention + others) + 768
    update, before = (each.phases[Phase.UPDATE] for each in (only, none))
    assert update.gradients - before.gradients == 12 * 2 * attention
    assert update.optimizer - before.optimizer == 12 * 2 * 2 * attention


def test_whole_modules_are_copies_beside_the_frozen_ones_even_where_those_are_tied() -> None:
    model = find_model("HuggingFaceTB/SmolLM2-135M")  # its embeddings are tied
    plan = Plan(lora=8, sequence_length=64)
    table = 49_152 * 576
    before = estimate(model, plan)
    for names, copies in (("embed_tokens", 1), ("lm_head", 1), ("embed_tokens,lm_head", 2)):
        report = estimate(model, replace(plan, lora_modules=names))
        assert report.parameters - before.parameters == copies * table
        assert report.trainable_parameters - before.trainable_parameters == copies * table
        assert report.gpu.weights - before.gpu.weights == 4 * copies * table
