"""QLoRA: bytes of packed weights; measured rows hold whole steps."""

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import BaseBits, Plan, Precision
from calculator.report import Report

# Llama 3.1 8B: 32 layers of 4,096 with 32 and 8 heads of 128 and 14,336 inside
LINEAR = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14_336)


def packed(quantization: BaseBits, precision: Precision = Precision.HALF) -> Report:
    plan = Plan(lora=16, sequence_length=64, precision=precision, quantization=quantization)
    return estimate(find_model("meta-llama/Llama-3.1-8B"), plan)


def test_double_quantisation_saves_the_bits_that_the_paper_says() -> None:
    # Dettmers et al., 2023, section 3: 32/64 bits per parameter become 8/64 + 32/(64 * 256); every
    # layer gets tables of 1 KiB and two small tensors more, the model one table
    saved = packed(BaseBits.NF4).gpu.weights - packed(BaseBits.NF4_DOUBLE).gpu.weights
    tables = 32 * 7 * (1024 + 512) + 1024
    expected = LINEAR * (32 / 64 - 8 / 64 - 32 / (64 * 256)) / 8 - tables
    assert saved == pytest.approx(expected, rel=1e-4)


def test_a_model_whose_layers_transformers_does_not_pack_says_so() -> None:
    # FalconLinear is no torch.nn.Linear; transformers asks for exactly that class
    plan = Plan(lora=16, sequence_length=64, precision=Precision.HALF)
    whole, found = (
        estimate(find_model("tiiuae/falcon-7b"), plan.but(quantization=bits))
        for bits in (BaseBits.NONE, BaseBits.NF4_DOUBLE)
    )
    assert found.gpu == whole.gpu
    assert any(note.startswith("Nothing is packed") for note in found.notes)
    assert any("is packed into 4 bits" in note for note in packed(BaseBits.NF4).notes)
