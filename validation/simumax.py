"""SimuMax's measured steps of Megatron-LM, and for each why the calculator does not count it."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("published") / "simumax.csv"
LLAMA: Final = "validation/published/configs/llama-3-70b-12-layers.json"
DEEPSEEK: Final = "deepseek-ai/DeepSeek-V2"


@dataclass(frozen=True, slots=True)
class Case:
    """One of SimuMax's figures as printed; `measured_as` names the case whose run gave it."""

    name: str
    allocated: str
    simumax: str
    measured_as: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Steps that are divided alike: a name for them, why they are not counted, and the rule.

    `options` ask the calculator for such a step, and it refuses them because of `refused`.
    """

    title: str
    words: str
    options: Mapping[str, str]
    refused: str
    model: str = LLAMA


# for each: Megatron's distributed optimizer divides the states among the GPUs of data parallelism
REASONS: Final = {
    "tensor-and-data": Reason(
        "Llama, tensor parallel on 2 or 4 GPUs, 4 or 2 copies",
        "Tensor parallelism beside data parallelism; states in shards",
        {"tensor_parallel": "2", "gpus": "4"},
        "data_parallel",
    ),
    "pipeline-and-data": Reason(
        "Llama, pipeline of 2 stages, 4 copies",
        "States of 16-bit weights in shards, gradients not (ZeRO-1), beside a pipeline",
        {
            "pipeline_parallel": "2",
            "pipeline_schedule": "1f1b",
            "gpus": "4",
            "data_parallel": "zero1",
        },
        "precision",
    ),
    "experts-and-data": Reason(
        "DeepSeek V2 and V3, experts on 8 GPUs",
        "Each GPU reads a micro-batch of its own, where we count experts divided among GPUs that "
        "read the same one; a fixed number of tokens per expert; states in shards",
        {"expert_parallel": "8", "gpus": "16"},
        "expert_parallel",
        DEEPSEEK,
    ),
    "experts-and-pipeline": Reason(
        "DeepSeek V2 and V3, experts on 4 GPUs, pipeline of 2 stages",
        "The same, in a pipeline",
        {"expert_parallel": "4", "pipeline_parallel": "2", "pipeline_schedule": "1f1b"},
        "pipeline_parallel",
        DEEPSEEK,
    ),
    "tensor-and-context": Reason(
        "Llama, context parallel on 4 GPUs, tensor parallel on 2",
        "Context parallelism beside tensor parallelism; GPUs exchange heads, where we count keys "
        "and values; states in shards",
        {"context_parallel": "4", "gpus": "4", "tensor_parallel": "2"},
        "context_parallel",
    ),
    "context-and-states": Reason(
        "Llama, context parallel on 8 GPUs",
        "States of 16-bit weights in shards, gradients not (ZeRO-1); GPUs exchange heads, where we "
        "count keys and values",
        {"context_parallel": "8", "gpus": "8", "data_parallel": "zero1"},
        "precision",
    ),
}


@cache
def cases() -> tuple[Case, ...]:
    """All cases in the order of the source."""
    with PATH.open(encoding="utf-8", newline="") as file:
        return tuple(Case(*row.values()) for row in csv.DictReader(file, restval=""))


def with_reason(key: str) -> list[Case]:
    """The cases with a reason; without one, those that the scoreboard compares."""
    return [case for case in cases() if case.reason == key]


def measured(key: str) -> list[Case]:
    """Those of them that a run of their own measured."""
    return [case for case in with_reason(key) if case.measured_as == case.name]
