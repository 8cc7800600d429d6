"""LoRA: what is trained and what a frozen weight keeps; 89 measured rows hold the sizes."""

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve

# bigscience/mt0-large, of which peft's guide prints: trainable params: 2359296 || all params:
# 1231940608, for r=8
MT0_LARGE = {"model_type": "mt5", "d_model": 1024, "d_ff": 2816, "d_kv": 64, "num_heads": 16}
MT0_LARGE |= {"num_layers": 24, "num_decoder_layers": 24, "vocab_size": 250_112}
MT0_LARGE |= {"feed_forward_proj": "gated-gelu"}


def test_as_many_weights_are_trained_as_peft_prints() -> None:
    report = estimate(from_config(MT0_LARGE, "mt0-large"), Plan(lora=8, sequence_length=32))
    assert report.trainable_parameters == 2_359_296
    # the class of then had an output layer of its own, which today's ties
    assert report.parameters == 1_231_940_608 - 250_112 * 1024


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
