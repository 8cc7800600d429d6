"""LoRA: what is trained and what a frozen weight keeps; 89 measured rows hold the sizes."""

import pytest

from calculator.estimate import estimate
from calculator.hf_config import from_config
from calculator.plan import Plan
from calculator.techniques.quantization import packed_bytes
from tests.calculator.answers import refused
from tests.calculator.plans import case_of

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
    case = case_of("HuggingFaceTB/SmolLM2-135M", lora=4, lora_targets=targets)
    if means is None:
        with refused("lora_targets = 'self_attn.q_proj'", "gate_proj"):
            assert case.resolved
    else:
        assert case.resolved.lora_targets == means


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
    case = case_of("mistralai/Mixtral-8x7B-v0.1", lora=4, lora_targets=targets)
    assert case.report.trainable_parameters == elements


def test_scales_take_the_bits_that_the_paper_says() -> None:
    # Dettmers et al., 2023, section 3: 32/64 bits per parameter become 8/64 + 32/(64 * 256)
    bits = [8 * packed_bytes(2**28, double=double) / 2**28 for double in (False, True)]
    assert bits == [4 + 32 / 64, 4 + 8 / 64 + 32 / (64 * 256)]


def test_a_model_whose_layers_transformers_does_not_pack_says_so() -> None:
    # FalconLinear is no torch.nn.Linear; transformers asks for exactly that class
    words = "lora=16 sequence_length=64 precision=half"
    whole, found = (
        case_of("tiiuae/falcon-7b", words, quantization=bits).report
        for bits in ("none", "nf4-double")
    )
    assert found.gpu == whole.gpu
    assert any(note.startswith("Nothing is packed") for note in found.notes)
    packed = case_of("meta-llama/Llama-3.1-8B", words, quantization="nf4").report
    assert any("is packed into 4 bits" in note for note in packed.notes)
