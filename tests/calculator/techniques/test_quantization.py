"""QLoRA: bytes of packed weights; measured rows hold whole steps."""

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import BaseBits, Plan, Precision
from calculator.report import Report
from calculator.resolution import resolve

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


def test_a_packed_weight_takes_half_a_byte_and_counts_as_a_whole_parameter() -> None:
    plain, four = packed(BaseBits.NONE), packed(BaseBits.FP4)
    assert plain.parameters == four.parameters
    expected = LINEAR * (2 - 0.5 - 4 / 64) - 32 * 7 * 512  # a table of 16 levels for each
    assert plain.gpu.weights - four.gpu.weights == expected


def test_what_is_not_packed_is_in_32_bits_after_pefts_casts() -> None:
    narrow, wide = packed(BaseBits.NF4), packed(BaseBits.NF4, Precision.AMP)
    rest = 2 * 128_256 * 4096 + (2 * 32 + 1) * 4096
    assert wide.gpu.weights - narrow.gpu.weights >= 2 * rest  # and rotary tables
    assert wide.gpu.weights - narrow.gpu.weights < 2 * rest + 4096


def test_packed_weights_need_adapters() -> None:
    with pytest.raises(InputError, match=r"quantization = 'nf4'.*LoRA rank"):
        resolve(find_model("meta-llama/Llama-3.1-8B"), Plan(quantization=BaseBits.NF4))
