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


def plan(**options: Any) -> Plan:
    return resolve(MODELS["gpt2-s"], Plan(**options))


@pytest.mark.parametrize(
    ("precision", "lasting", "update"),
    [
        # Micikevicius et al., 2017: 2 + 2 + 4 (masters) + 8 (Adam); the update widens the gradients
        # (4) and foreach adds its square roots (4)
        ("mixed", 16, 8),
        # Mistral 7B, fully fine-tuned in bf16 (public measurement): 10.002 bytes per parameter
        ("half", 8, 2),
    ],
)
def test_a_parameter_takes_the_published_bytes_and_more_for_the_update(
    precision: str, lasting: int, update: int
) -> None:
    found = statics(MATRIX, 0, plan(precision=precision))
    assert found.weights + found.gradients + found.optimizer == lasting * NUMBERS
    assert found.update == update * NUMBERS


@pytest.mark.parametrize(("bits", "paged"), [(32, 8 * 400_000), (8, 2 * 400_000)])
def test_states_are_paged_from_100000_elements_on(bits: int, paged: int) -> None:
    # bitsandbytes' `get_state_buffer` pages no tensor of fewer than 1e5 elements
    tensors = [ParameterTensor("below", (99_999,)), ParameterTensor("at", (100_000,), copies=4)]
    assert paged_bytes(tensors, plan(paged_optimizer=True, optimizer_bits=bits)) == paged


@pytest.mark.parametrize(
    ("precision", "item"), [("fp32", 4), ("amp", 4), ("mixed", 2), ("half", 2)]
)
def test_offload_keeps_what_is_updated_in_ram_and_moves_weights_and_gradients(
    precision: str, item: int
) -> None:
    # Ren et al., 2021: gradients to the CPU, updated weights back; rows hold what the GPU keeps
    there = statics(MATRIX, 0, plan(precision=precision, offload="optimizer"))
    here = statics(MATRIX, 0, plan(precision=precision))
    assert (there.to_ram, there.to_gpu) == (item * NUMBERS, item * NUMBERS)
    updated = 2 if precision == "half" else 4
    assert (there.ram_weights, there.ram_gradients) == (updated * NUMBERS, updated * NUMBERS)
    masters = 4 * NUMBERS if precision == "mixed" else 0
    assert there.ram_optimizer == here.optimizer - masters


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


def test_8_bit_states_of_the_run_take_a_quarter_of_the_32_bit_ones() -> None:
    # 256 MB in the run's published checkpoint, against 8 x 125.9 million bytes; ours has smaller
    # blocks (256 instead of 4,096 numbers), which cost a little more
    model = MODELS["dalle-together"]
    resolved = resolve(model, Plan(optimizer="lamb", optimizer_bits=8))
    states = state_bytes(parameter_tensors(model, resolved), resolved)
    assert states == pytest.approx(256e6, rel=0.02)
    assert states < 0.26 * 8 * count_parameters(model, resolved)
