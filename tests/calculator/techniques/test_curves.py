"""The curve of a step ends as its report, whatever the technique."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.estimate import estimate, totals, totals_within
from calculator.plan import Plan

LLAMA, QWEN = "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-0.5B"
SHARDS = {"gpus": 4, "data_parallel": "fsdp", "precision": "mixed", "sequence_length": 128}
STAGES = {"sequence_length": 64, "precision": "half", "checkpointing": "full"}
STAGES |= {"tied_embeddings": False, "pipeline_parallel": 4}
INTERLEAVED = {**STAGES, "pipeline_schedule": "interleaved", "accumulation": 8}
CHUNKED = {"sequence_length": 64, "chunked_loss": "torch"}
PARTS = {"sequence_length": 256, "precision": "half", "gpus": 8, "context_parallel": 4}


@pytest.mark.parametrize(
    ("model", "layers", "options"),
    [
        ("gpt2-s", 7, SHARDS),
        ("gpt2-s", 7, {**SHARDS, "lora": 8, "precision": "half", "checkpointing": "full"}),
        ("gpt2-s", 12, {**SHARDS, "data_parallel": "zero1", "precision": "half"}),
        ("gpt2-s", 12, {**SHARDS, "data_parallel": "zero2", "precision": "half"}),
        ("Qwen/Qwen3-0.6B", 28, PARTS),
        ("Qwen/Qwen3-0.6B", 28, {**PARTS, "context_rotation": "alltoall", "batch_size": 2}),
        (QWEN, 24, {"sequence_length": 96, "attention": "eager", "tensor_parallel": 2}),
        (QWEN, 24, {"sequence_length": 96, "tensor_parallel": 2, "sequence_parallel": True}),
        (QWEN, 24, {**STAGES, "pipeline_schedule": "gpipe", "accumulation": 6}),
        (QWEN, 24, {**STAGES, "pipeline_schedule": "1f1b", "accumulation": 6}),
        (QWEN, 24, INTERLEAVED),
        (QWEN, 24, {**INTERLEAVED, "sharing_groups": 1}),
        (LLAMA, 32, {"sequence_length": 128, "checkpointing": "operations"}),
        *(("gpt2-s", 6, {**CHUNKED, "precision": name}) for name in ("amp", "half", "mixed")),
        ("Qwen/Qwen3-30B-A3B", 8, {"sequence_length": 96, "expert_parallel": 8}),
    ],
)
def test_the_highest_point_is_the_reported_peak(
    model: str, layers: int, options: dict[str, Any]
) -> None:
    architecture, plan = replace(find_model(model), layers=layers), Plan.parse(options)
    peak = estimate(architecture, plan).gpu.total
    assert curve(architecture, plan).peak.memory.total == peak
    # as a search counts the step, with and without a bound
    assert totals(architecture, plan).gpu == peak
    assert totals_within(architecture, plan, peak.__ge__) == totals(architecture, plan)
