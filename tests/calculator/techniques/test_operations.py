"""Checkpoints that keep results of some operations; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.architecture import Architecture
from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.parts import Part
from calculator.peaks.prepare import prepare
from calculator.peaks.timeline import measure
from calculator.peaks.trace import record
from calculator.plan import Attention, Checkpointing, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.pipeline import part_of
from tests.calculator.plans import Case
from tests.calculator.whole import peaks_of, whole_tape

PLAN = Plan(
    batch_size=2,
    sequence_length=128,
    precision=Precision.HALF,
    checkpointing=Checkpointing.OPERATIONS,
)
LLAMA = find_model("meta-llama/Llama-3.1-8B")


def kept(architecture: Architecture, plan: Plan) -> int:
    """Bytes of activations that wait for the backward pass."""
    return estimate(architecture, plan).phases[Phase.LOSS].activations


def kept_by_one_more_layer(architecture: Architecture, plan: Plan) -> int:
    """Bytes that another layer keeps."""
    layers = architecture.layers
    return kept(replace(architecture, layers=layers + 1), plan) - kept(architecture, plan)


def test_a_layer_keeps_its_input_and_every_second_result() -> None:
    # torchtitan's list at its benchmarks of December 2024: mm, of which every second is computed
    # again, and attention. Llama's products are q, k, v, output, gate, up and down, in this order.
    tokens, width, heads = 2 * 128, LLAMA.hidden_size, LLAMA.heads
    queries, values = heads * LLAMA.head_size, LLAMA.numbers["key_value_heads"] * LLAMA.head_size
    half, single, block = 2, 4, 512
    products = queries + values + LLAMA.feed_forward_size + width
    attention = queries * half * tokens + single * heads * tokens + 2 * block  # and random state
    expected = half * tokens * (width + products) + attention
    assert kept_by_one_more_layer(LLAMA, PLAN) == expected


def test_without_a_fused_kernel_no_result_of_attention_is_kept() -> None:
    eager = replace(PLAN, attention=Attention.EAGER)
    tokens, width = 2 * 128, LLAMA.hidden_size
    queries, values = width, LLAMA.numbers["key_value_heads"] * LLAMA.head_size
    products = queries + values + LLAMA.feed_forward_size + width
    assert kept_by_one_more_layer(LLAMA, eager) == 2 * tokens * (width + products)


def test_it_keeps_less_than_everything_and_more_than_full_checkpointing() -> None:
    everything, some, inputs = (
        kept(LLAMA, replace(PLAN, checkpointing=each)) for each in ("none", "operations", "full")
    )
    assert inputs < some < everything


@pytest.mark.parametrize("model", ["gpt2-s", "google/gemma-3-270m", "Qwen/Qwen2.5-0.5B"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "amp", "accumulation": 2},
        {"precision": "fp32"},
        {"checkpoint_every": 3},
        {"lora": 8, "lora_targets": "all-linear"},
    ],
)
def test_a_tape_with_layers_left_out_has_the_peaks_of_the_whole_one(
    model: str, options: dict[str, Any]
) -> None:
    architecture = replace(find_model(model), layers=30)
    case = Case(architecture, replace(PLAN, **options))
    static = case.report.phases[Phase.UPDATE]
    exists = static.gradients if case.plan.accumulation > 1 else 0
    always = static.weights + static.optimizer + exists
    found = {phase: memory.total - always for phase, memory in case.report.phases.items()}
    del found[Phase.UPDATE]
    tape = whole_tape(case)
    assert found == peaks_of(tape.ledger, case)


def test_a_kept_result_is_a_share_where_layers_are_split() -> None:
    # all products of a layer but those of output and down, whose sums are whole, are divided
    tokens, width, gpus = 2 * 128, LLAMA.hidden_size, 4
    split = replace(PLAN, tensor_parallel=gpus, attention=Attention.EAGER)
    queries, values = width, LLAMA.numbers["key_value_heads"] * LLAMA.head_size
    products = (queries + values + LLAMA.feed_forward_size) // gpus + width
    assert kept_by_one_more_layer(LLAMA, split) == 2 * tokens * (width + products)


def test_each_micro_batch_in_flight_keeps_its_own_results() -> None:
    # stage 1 of 2 has two micro-batches between their passes, and each of its layers keeps as much
    # as without a pipeline
    stages = replace(PLAN, pipeline_parallel=2, accumulation=2, tied_embeddings=False)

    def first_stage(layers: int) -> int:
        model = replace(LLAMA, layers=layers)
        resolved = resolve(model, stages)
        part = part_of(model, resolved, 0)
        found = prepare(part, resolved)
        peaks = measure(record(found.step), found.numbers, found.left_out, (0, 0, 0, 0, 0))
        return peaks[Phase.FORWARD].parts[Part.ACTIVATIONS]

    more = first_stage(2 * 12) - first_stage(2 * 11)
    assert more == 2 * kept_by_one_more_layer(LLAMA, PLAN)
