"""Bytes of states; the layouts are those of torch.optim 2.13 and bitsandbytes 0.50."""

from typing import Any

import pytest

from calculator.catalog import MODELS, find_model
from calculator.parameters import count_parameters, parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.states import paged_bytes, state_bytes, statics, update_bytes
from calculator.tensors import ParameterTensor

MATRIX = [ParameterTensor("matrix", (1024, 1024))]
NUMBERS = 1024 * 1024
SMALL = [ParameterTensor("bias", (1024,))]
MAPS = 2 * 256 * 4  # bitsandbytes: a map of 256 fp32 values for each of Adam's states


def plan(**options: Any) -> Plan:
    return resolve(MODELS["gpt2-s"], Plan(**options))


def test_8_bit_adam_takes_2_03125_bytes_a_parameter() -> None:
    # one byte a state, and an fp32 scale for each 256 of them (Dettmers et al., 2021, blocks)
    assert state_bytes(MATRIX, plan(optimizer_bits=8)) == int(2.03125 * NUMBERS) + MAPS


def test_adafactor_keeps_rows_and_columns() -> None:
    # Shazeer and Stern, 2018: R^n and C^m instead of R^(n x m)
    factored = plan(optimizer="adafactor")
    assert state_bytes([ParameterTensor("matrix", (2048, 512))], factored) == 4 * (2048 + 512)
    assert state_bytes(SMALL, factored) == 4 * 1024
    narrow = plan(optimizer="adafactor", precision="half")
    assert state_bytes([ParameterTensor("matrix", (2048, 512))], narrow) == 2 * (2048 + 512)


@pytest.mark.parametrize(("bits", "paged"), [(32, 8 * 400_000), (8, 2 * 400_000)])
def test_states_are_paged_from_100000_elements_on(bits: int, paged: int) -> None:
    # bitsandbytes' `get_state_buffer` pages no tensor of fewer than 1e5 elements
    tensors = [ParameterTensor("below", (99_999,)), ParameterTensor("at", (100_000,), copies=4)]
    assert paged_bytes(tensors, plan(paged_optimizer=True, optimizer_bits=bits)) == paged


def test_mixed_precision_takes_16_bytes_a_parameter_and_8_more_for_the_update() -> None:
    # Micikevicius et al., 2017: 2 + 2 + 4 (masters) + 8 (Adam); the update widens the gradients
    # (4) and foreach adds its square roots (4)
    found = statics(MATRIX, 0, plan(precision="mixed"))
    assert found.weights + found.gradients + found.optimizer == 16 * NUMBERS
    assert found.update == 8 * NUMBERS


def test_pure_16_bit_training_takes_8_bytes_and_2_more_for_the_update() -> None:
    # Mistral 7B, fully fine-tuned in bf16 (public measurement): 10.002 bytes per parameter
    found = statics(MATRIX, 0, plan(precision="half"))
    assert found.weights + found.gradients + found.optimizer == 8 * NUMBERS
    assert found.update == 2 * NUMBERS


@pytest.mark.parametrize(
    ("precision", "item"), [("fp32", 4), ("amp", 4), ("mixed", 2), ("half", 2)]
)
def test_offload_leaves_weights_and_gradients_on_the_gpu_and_moves_both(
    precision: str, item: int
) -> None:
    # Ren et al., 2021: gradients to the CPU, updated weights back
    there = statics(MATRIX, 0, plan(precision=precision, offload="optimizer"))
    here = statics(MATRIX, 0, plan(precision=precision))
    assert (there.weights, there.gradients) == (item * NUMBERS, item * NUMBERS)
    assert (there.optimizer, there.update) == (0, 0)
    assert (there.to_ram, there.to_gpu) == (item * NUMBERS, item * NUMBERS)
    updated = 2 if precision == "half" else 4
    assert (there.ram_weights, there.ram_gradients) == (updated * NUMBERS, updated * NUMBERS)
    masters = 4 * NUMBERS if precision == "mixed" else 0
    assert there.ram_optimizer == here.optimizer - masters
    assert (here.to_ram, here.to_gpu) == (0, 0)


def test_each_of_several_equal_tensors_is_moved() -> None:
    moved = statics([ParameterTensor("matrix", (1024, 3), copies=5)], 0, plan(offload="optimizer"))
    assert moved.to_ram == moved.to_gpu == 5 * 4 * 1024 * 3


def test_a_gradient_scaler_keeps_its_scale_and_a_counter() -> None:
    # torch/amp/grad_scaler.py: `_scale` and `_growth_tracker`, each in a block of 512 bytes
    plans = (plan(precision="amp", format="fp16", gradient_scaler=on) for on in (True, False))
    scaled, plain = (statics(MATRIX, 0, each).optimizer for each in plans)
    assert scaled - plain == 2 * 512


@pytest.mark.parametrize(("update", "copies"), [("foreach", 3), ("loop", 1)])
def test_an_update_sums_all_gradients_first_or_each_before_its_weight(
    update: str, copies: int
) -> None:
    # a norm's weights beside the shares of tensor parallelism: DTensor's partial gradients
    norms = [ParameterTensor(name, (1024,), is_summed=True) for name in ("first", "second", "last")]
    tensors = [*norms, ParameterTensor("share", (1024, 1024), is_split=True)]
    options = {"optimizer": "sgd", "update": update, "tensor_parallel": 2}
    for more, gpus in ({"gpus": 2}, copies * 4 * 1024), ({"gpus": 4, "data_parallel": "fsdp"}, 0):
        summed = resolve(find_model("meta-llama/Llama-3.2-1B"), Plan(**options, **more))
        assert update_bytes(tensors, summed) == gpus


def test_a_weight_that_no_loss_reaches_has_a_master_and_a_frozen_one_has_none() -> None:
    # the optimizer gets what asks for a gradient, whether one arrives or not
    frozen, idle = ParameterTensor("frozen", (1024,), trained=False), 4 * 1024
    one = [*MATRIX, frozen]
    two = [*one, ParameterTensor("idle", (1024,), trained=False, idle=True)]
    options = plan(precision="mixed", freeze="embeddings")
    assert statics(two, 0, options).optimizer - statics(one, 0, options).optimizer == idle


def test_8_bit_states_of_the_run_take_a_quarter_of_the_32_bit_ones() -> None:
    # 256 MB in the run's published checkpoint, against 8 x 125.9 million bytes; ours has smaller
    # blocks (256 instead of 4,096 numbers), which cost a little more
    model = MODELS["dalle-together"]
    resolved = resolve(model, Plan(optimizer="lamb", optimizer_bits=8))
    states = state_bytes(parameter_tensors(model, resolved), resolved)
    assert states == pytest.approx(256e6, rel=0.02)
    assert states < 0.26 * 8 * count_parameters(model, resolved)
