"""Muon beside AdamW; measured rows hold whole steps."""

from dataclasses import replace

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.optimizers.hidden import split
from calculator.optimizers.muon import iteration_bytes
from calculator.parameters import parameter_tensors
from calculator.plan import Optimizer, Plan
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.tensors import ParameterTensor

PLAN = Plan(sequence_length=64, optimizer=Optimizer.MUON)
GPT2 = find_model("gpt2-s")
# 12 layers of 768: queries, keys and values, output, and a feed-forward layer of four times as many
MATRICES = 12 * (3 + 1 + 4 + 4) * 768 * 768
# transformers' GPT2LMHeadModel
ALL = 124_439_808


def test_one_state_for_a_hidden_layers_matrix_and_two_for_the_rest() -> None:
    states = estimate(GPT2, PLAN).phases[Phase.UPDATE].optimizer
    assert states == 4 * MATRICES + 2 * 4 * (ALL - MATRICES)


def test_embeddings_positions_norms_and_biases_are_left_to_adam() -> None:
    plan = resolve(GPT2, PLAN)
    hidden, others = split(parameter_tensors(GPT2, plan))
    assert sum(item.elements * item.copies for item in hidden) == MATRICES
    tables = sum(item.elements for item in others if item.table)
    assert tables == (50_257 + 1024) * 768
    assert split(hidden) == (hidden, [])


def test_the_iteration_holds_two_matrices_and_two_products_in_16_bits() -> None:
    wide, tall = ParameterTensor("wide", (256, 1024)), ParameterTensor("tall", (1024, 256))
    expected = 256 * 1024 * (4 + 2 + 2) + 2 * 2 * 256**2
    assert iteration_bytes([wide], 4) == iteration_bytes([tall], 4) == expected
    assert iteration_bytes([], 4) == 0


def test_the_update_takes_what_the_greater_of_both_does() -> None:
    # foreach makes the square roots of all that AdamW updates: more than a matrix's iteration
    update = estimate(GPT2, PLAN).phases[Phase.UPDATE]
    assert update.temporaries == 4 * (ALL - MATRICES)
    fused = estimate(GPT2, replace(PLAN, update="fused")).phases[Phase.UPDATE]  # type: ignore[arg-type]
    assert fused.temporaries == 4 * 768 * 768 * 8 + 2 * 2 * 768**2
