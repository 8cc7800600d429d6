"""FSDP2's shards in RAM; measured rows hold whole steps."""

import pytest

from tests.calculator.plans import case_of

SHARDS = "data_parallel=fsdp cpu_offload=True"
PARAMETERS = 8_030_261_248  # 16,060,522,496 bytes of bfloat16, as its index on the Hub says
KIB, MIB = 2**10, 2**20


def test_each_shard_and_gradient_is_a_power_of_two_in_ram_and_states_are_not() -> None:
    # of 64 GPUs: 1 MiB of the queries' and the output's 4,096 rows in 32 bits, 256 KiB of keys' and
    # values', 3.5 MiB of the feed-forward layer's three, 256 bytes of each norm, 31.3 MiB of each
    # table's 128,256 rows
    layer = 2 * MIB + 2 * 256 * KIB + 3 * 4 * MIB + 2 * 256
    whole = 32 * layer + 2 * 32 * MIB + 256
    words = f"{SHARDS} gpus=64 precision=mixed sequence_length=256"
    ram = case_of("meta-llama/Llama-3.1-8B", words).report.ram
    assert (ram.weights, ram.gradients) == (whole, whole)
    assert ram.optimizer == pytest.approx(8 * PARAMETERS / 64, rel=1e-4)
    assert ram.temporaries == pytest.approx(4 * PARAMETERS / 64, rel=1e-4)  # the foreach update's


def test_packed_weights_take_a_quarter_of_the_ram_of_whole_ones() -> None:
    # Llama 2 70B's config.json on 8 GPUs, shards in 16 bits, rounded up to powers of two: q and o
    # (8,192 x 8,192) 16 MiB each, k and v (1,024 x 8,192) 2 MiB, the three of the feed-forward
    # layer (28,672 x 8,192) 64 MiB; in 4 bits a quarter of each, in 80 layers
    words = f"{SHARDS} gpus=8 precision=half lora=8 lora_targets=all-linear"
    whole, packed = (
        case_of("meta-llama/Llama-2-70b-hf", words, quantization=bits).report.ram.weights
        for bits in ("none", "nf4")
    )
    assert whole - packed == 80 * (2 * 16 + 2 * 2 + 3 * 64) * MIB * 3 // 4
