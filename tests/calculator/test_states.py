"""Bytes of states; the layouts are those of torch.optim 2.13 and bitsandbytes 0.50."""

from typing import Any

import pytest
from hypothesis import given

from calculator.catalog import MODELS
from calculator.parameters import count_parameters, parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.states import (
    from_torch,
    state_bytes,
    statics,
    update_bytes,
)
from calculator.tensors import ParameterTensor, tensors_bytes
from tests.calculator.plans import Case, cases, examples

MATRIX = [ParameterTensor("matrix", (1024, 1024))]
NUMBERS = 1024 * 1024
SMALL = [ParameterTensor("bias", (1024,))]
MAPS = 2 * 256 * 4  # bitsandbytes: a map of 256 fp32 values for each of Adam's states


def plan(**options: Any) -> Plan:
    return resolve(MODELS["gpt2-s"], Plan(**options))


def test_a_copy_of_all_tensors_rounds_each_to_whole_blocks() -> None:
    tensors = [ParameterTensor("bias", (3,), copies=5), *MATRIX]
    assert tensors_bytes(tensors, 4) == 5 * 512 + 4 * NUMBERS


@pytest.mark.parametrize(
    ("optimizer", "bytes_a_number"),
    [("adam", 8), ("momentum", 4), ("sgd", 0), ("lion", 4)],
)
def test_32_bit_states_take_four_bytes_a_number(optimizer: str, bytes_a_number: int) -> None:
    # Kingma and Ba: two moments; SGD with momentum and Lion (Chen et al.): one
    assert state_bytes(MATRIX, plan(optimizer=optimizer)) == bytes_a_number * NUMBERS


def test_pure_16_bit_states_take_two_bytes_a_number() -> None:
    # torch.optim keeps states in the weights' own format
    assert state_bytes(MATRIX, plan(precision="half")) == 4 * NUMBERS


def test_8_bit_adam_takes_2_03125_bytes_a_parameter() -> None:
    # one byte a state, and an fp32 scale for each 256 of them (Dettmers et al., 2021, blocks)
    assert state_bytes(MATRIX, plan(optimizer_bits=8)) == int(2.03125 * NUMBERS) + MAPS


def test_8_bit_lion_has_one_state() -> None:
    bits = plan(optimizer="lion", optimizer_bits=8)
    assert state_bytes(MATRIX, bits) == int(1.015625 * NUMBERS) + MAPS // 2


def test_a_tensor_below_4096_numbers_is_not_quantised() -> None:
    # bitsandbytes: min_8bit_size = 4096
    assert state_bytes(SMALL, plan(optimizer_bits=8)) == 8 * 1024
    at_the_limit = [ParameterTensor("bias", (4096,))]
    assert state_bytes(at_the_limit, plan(optimizer_bits=8)) == 2 * (4096 + 512) + MAPS


@pytest.mark.parametrize("bits", [8, 32])
def test_lamb_adds_a_norm_of_one_block_a_tensor(bits: int) -> None:
    tensors = [*MATRIX, ParameterTensor("other", (1024, 1024), copies=2)]
    adam, lamb = (
        state_bytes(tensors, plan(optimizer=name, optimizer_bits=bits)) for name in ("adam", "lamb")
    )
    assert lamb == adam + 3 * 512


def test_fused_adam_adds_a_step_counter_of_one_block_a_tensor() -> None:
    # torch.optim.Adam keeps `step` on the GPU only where it is fused or capturable
    assert state_bytes(MATRIX, plan(update="fused")) == 8 * NUMBERS + 512


def test_adafactor_keeps_rows_and_columns() -> None:
    # Shazeer and Stern, 2018: R^n and C^m instead of R^(n x m)
    factored = plan(optimizer="adafactor")
    assert state_bytes([ParameterTensor("matrix", (2048, 512))], factored) == 4 * (2048 + 512)
    assert state_bytes(SMALL, factored) == 4 * 1024
    narrow = plan(optimizer="adafactor", optimizer_bits=16)
    assert state_bytes([ParameterTensor("matrix", (2048, 512))], narrow) == 2 * (2048 + 512)


@pytest.mark.parametrize(
    ("update", "temporaries"), [("foreach", 8 * NUMBERS), ("fused", 0), ("loop", 12 * NUMBERS)]
)
def test_the_three_updates_of_adam_differ_in_temporaries(update: str, temporaries: int) -> None:
    # foreach: a list of square roots of all weights; loop: root and quotient of one tensor, beside
    # the quotient of the tensor before
    two = [ParameterTensor("matrix", (1024, 1024), copies=2)]
    assert update_bytes(two, plan(update=update)) == temporaries


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer_bits": 8},
        {"optimizer": "lamb"},
        {"optimizer": "lion"},
        {"optimizer": "sgd"},
        {"optimizer": "momentum"},
    ],
)
def test_these_updates_make_no_temporaries(options: dict[str, Any]) -> None:
    assert update_bytes(MATRIX, plan(**options)) == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"optimizer_bits": 8}, False),
        ({"optimizer": "lamb"}, False),
        ({"optimizer": "lion"}, False),
        ({"optimizer": "sgd"}, True),
        ({"optimizer": "adafactor"}, True),
        ({"precision": "half"}, True),
        ({"precision": "half", "optimizer_bits": 32}, False),
    ],
)
def test_which_library_updates(options: dict[str, Any], expected: bool) -> None:
    assert from_torch(plan(**options)) is expected


def test_mixed_precision_takes_16_bytes_a_parameter_and_8_more_for_the_update() -> None:
    # Micikevicius et al., 2017: 2 + 2 + 4 (masters) + 8 (Adam); the update widens the gradients
    # (4) and foreach adds its square roots (4)
    found = statics(MATRIX, 0, plan(precision="mixed"))
    assert found.weights + found.gradients + found.optimizer == 16 * NUMBERS
    assert found.update == 8 * NUMBERS


def test_autocast_takes_16_bytes_a_parameter() -> None:
    found = statics(MATRIX, 0, plan(precision="amp"))
    assert (found.weights, found.gradients, found.optimizer) == (
        4 * NUMBERS,
        4 * NUMBERS,
        8 * NUMBERS,
    )


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


def test_buffers_count_with_the_weights() -> None:
    assert statics(SMALL, 700, plan()).weights == 4 * 1024 + 700


def test_8_bit_states_of_the_run_take_a_quarter_of_the_32_bit_ones() -> None:
    # 256 MB in the run's published checkpoint, against 8 x 125.9 million bytes; ours has smaller
    # blocks (256 instead of 4,096 numbers), which cost a little more
    model = MODELS["dalle-together"]
    resolved = resolve(model, Plan(optimizer="lamb", optimizer_bits=8))
    states = state_bytes(parameter_tensors(model, resolved), resolved)
    assert states == pytest.approx(256e6, rel=0.02)
    assert states < 0.26 * 8 * count_parameters(model, resolved)


@given(cases(catalog_only=True))
@examples(60)
def test_fewer_bits_never_take_more(case: Case) -> None:
    if case.plan.optimizer in ("adafactor", "muon", "apollo"):  # in the weights' own format only
        return
    sizes = []
    for bits in (8, 16, 32):
        resolved = resolve(case.architecture, case.but(optimizer_bits=bits).plan)
        tensors = parameter_tensors(case.architecture, resolved)
        sizes.append(state_bytes(tensors, resolved))
    assert sizes[0] <= sizes[2]
    assert sizes[1] <= sizes[2]
