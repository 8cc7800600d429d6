"""Sequences divided among several GPUs; measured rows hold whole steps."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve

LLAMA = "meta-llama/Llama-3.1-8B"
PLAN = Plan(sequence_length=4096, precision=Precision.HALF, gpus=8, context_parallel=4)
# its config.json
LAYERS, KEYS, HEAD = 32, 8, 128


def test_weights_and_states_are_those_of_all_gpus_and_activations_of_a_part() -> None:
    model = find_model(LLAMA)
    divided, whole = (estimate(model, replace(PLAN, context_parallel=n)) for n in (4, 1))
    for name in ("weights", "gradients", "optimizer"):
        found = (getattr(report.phases[Phase.UPDATE], name) for report in (divided, whole))
        assert len({*found}) == 1
    kept = (report.phases[Phase.LOSS].activations for report in (divided, whole))
    fewer, more = kept
    # all but inputs is a quarter, and the output of attention is kept once more in another order
    assert more / 4 < fewer < more / 3


def test_keys_and_values_are_gathered_once_and_their_gradients_go_round_in_32_bits() -> None:
    found = {each.name: each.sizes for each in estimate(find_model(LLAMA), PLAN).collectives}
    part = 2 * KEYS * 4096 // 4 * HEAD  # elements of keys and values of 1,024 tokens
    assert found["context_all_gather"] == (2 * 4 * part,) * LAYERS * 2
    assert found["context_all_to_all"] == (4 * part,) * LAYERS * 4
    assert sum(found["all_reduce"]) == 2 * 8_030_261_248  # gradients, over all GPUs


def test_keys_and_values_that_go_round_are_sent_in_every_turn_but_the_last() -> None:
    turning = replace(PLAN, context_rotation="alltoall")
    found = {each.name: each.sizes for each in estimate(find_model(LLAMA), turning).collectives}
    part = 2 * KEYS * 4096 // 4 * HEAD
    assert "context_all_gather" not in found
    sent = sorted(found["context_all_to_all"])
    assert sent == [2 * part] * LAYERS * (3 + 3) + [4 * part] * LAYERS * 4


def test_what_all_gpus_gathered_is_more_than_what_one_passes_on() -> None:
    small = replace(find_model(LLAMA), vocabulary_size=1000)  # attention, not the loss, is the peak
    plan = replace(PLAN, checkpointing="full", data_parallel="fsdp", gpus=64, context_parallel=64)
    gathered, passed = (
        estimate(small, replace(plan, sequence_length=2**20, context_rotation=way)).gpu.total
        for way in ("allgather", "alltoall")
    )
    whole = 2 * 2 * KEYS * 2**20 * HEAD  # bytes of all keys and values in 16 bits
    assert whole / 2 < gathered - passed < whole


def test_shards_are_cut_over_all_gpus() -> None:
    model = find_model(LLAMA)
    plan = replace(PLAN, data_parallel="fsdp", precision="mixed")
    divided, whole = (estimate(model, replace(plan, context_parallel=n)) for n in (8, 1))
    for name in ("all_gather", "reduce_scatter"):
        sizes = [
            next(each.sizes for each in report.collectives if each.name == name)
            for report in (divided, whole)
        ]
        assert sizes[0] == sizes[1]


def test_a_window_shorter_than_the_sequence_is_refused() -> None:
    # context_parallel expresses full causal attention alone
    model = replace(find_model("Qwen/Qwen3-0.6B"), pattern=("sliding_attention",))
    windowed = replace(model, more=(*dict(model.more).items(), ("window", 1024)))
    resolve(windowed, replace(PLAN, sequence_length=1016))
    with pytest.raises(InputError, match="knows no windows of attention shorter"):
        resolve(windowed, PLAN)
