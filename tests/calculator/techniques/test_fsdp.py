"""FSDP2: shards, and what it refuses; measured rows hold whole steps."""

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import DataParallel, Plan, Precision
from calculator.report import Phase, Report

LLAMA = "meta-llama/Llama-3.1-8B"
# its checkpoint's index on the Hub says 16,060,522,496 bytes of bfloat16
PARAMETERS = 8_030_261_248


def sharded(gpus: int, **options: object) -> Report:
    given = {"precision": "mixed", "sequence_length": 256, "data_parallel": "fsdp", **options}
    return estimate(find_model(LLAMA), Plan.parse({"gpus": gpus, **given}))


def test_each_gpu_has_its_share_of_weights_gradients_and_states_in_32_bits() -> None:
    # every dimension of this model but its norms' is a multiple of 64
    update = sharded(64).phases[Phase.UPDATE]
    share = 4 * PARAMETERS / 64
    assert update.weights == pytest.approx(share, rel=1e-4)
    assert update.gradients == pytest.approx(share, rel=1e-4)
    assert update.optimizer == pytest.approx(2 * share, rel=1e-4)


def test_weights_are_gathered_in_16_bits_in_both_passes_and_reduced_in_32_once() -> None:
    found = {item["name"]: item for item in sharded(8).as_json()["collectives"]}
    root = 2 * 128_256 * 4096 + 4096  # embeddings, output layer, last norm
    gathered, reduced = found["all_gather"], found["reduce_scatter"]
    assert gathered["bytes"] == 2 * (2 * (PARAMETERS - root) + root)
    assert gathered["calls"] == 2 * 32 + 1
    assert reduced["bytes"] == 4 * PARAMETERS
    assert reduced["calls"] == 32 + 1


def test_frozen_weights_are_in_shards_and_adapters_alone_are_reduced() -> None:
    # peft: "trainable params: 6,815,744" for this model, rank 16 on q_proj and v_proj
    adapters = 6_815_744
    report = sharded(8, precision="half", lora=16)
    update = report.phases[Phase.UPDATE]
    assert report.trainable_parameters == adapters
    assert update.weights == pytest.approx((2 * PARAMETERS + 4 * adapters) / 8, rel=1e-3)
    assert update.gradients == pytest.approx(4 * adapters / 8, rel=1e-2)
    assert update.optimizer == pytest.approx(8 * adapters / 8, rel=1e-2)
    found = {item["name"]: item for item in report.as_json()["collectives"]}
    assert found["reduce_scatter"] == {
        "name": "reduce_scatter",
        "calls": 32,  # the root has nothing to reduce
        "bytes": 4 * adapters,
    }
    root = 2 * 128_256 * 4096 + 4096
    layers = 2 * (PARAMETERS - root) + 4 * adapters
    assert found["all_gather"]["bytes"] == 2 * layers + 2 * root


def test_adapters_are_gathered_in_16_bits_where_all_weights_are() -> None:
    adapters = 6_815_744
    report = sharded(8, lora=16)  # mixed
    found = {item["name"]: item["bytes"] for item in report.as_json()["collectives"]}
    root = 2 * 128_256 * 4096 + 4096
    assert found["all_gather"] == 2 * (2 * (PARAMETERS - root + adapters) + root)
    assert found["reduce_scatter"] == 4 * adapters
    assert any("adapters are gathered and computed in 16 bits" in note for note in report.notes)


def test_packed_weights_are_cut_as_they_are_stored_and_gathered_at_half_a_byte() -> None:
    adapters = 6_815_744
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14_336)
    report = sharded(8, precision="half", lora=16, quantization="nf4")
    found = {item["name"]: item["bytes"] for item in report.as_json()["collectives"]}
    root = 2 * (2 * 128_256 * 4096 + 4096)
    norms = 32 * 2 * 4096 * 2
    assert found["all_gather"] == 2 * (linear // 2 + norms + 4 * adapters) + root
    weights = report.phases[Phase.UPDATE].weights
    scales = 4 * linear // 64  # whole on each GPU
    held = scales + (linear // 2 + norms + 4 * adapters + root) // 8
    assert weights == pytest.approx(held, rel=1e-3)
    assert any("bnb_4bit_quant_storage" in note for note in report.notes)


def test_the_more_gpus_the_less_each_holds() -> None:
    peaks = [sharded(gpus).gpu.total for gpus in (2, 4, 8, 16, 64, 1024)]
    assert peaks == sorted(peaks, reverse=True)


def test_rows_that_do_not_divide_are_padded_and_named() -> None:
    # GPT-2 has 50,257 tokens: 8 GPUs hold 6,283 rows of them, the last one 6,276
    report = estimate(
        find_model("gpt2-s"),
        Plan(gpus=8, data_parallel=DataParallel.FSDP, precision=Precision.FP32),
    )
    even = 4 * (124_439_808 - 50_257 * 768) // 8
    assert report.phases[Phase.UPDATE].weights == pytest.approx(even + 4 * 6283 * 768, abs=2**17)
    assert any("1 of 148 weights have rows that 8 GPUs do not divide" in n for n in report.notes)
    assert any("50,257" in note for note in report.notes)
