"""The page says of each technique how much of a step's peak it saves."""

import pytest

from calculator.catalog.checkpoints import CHECKPOINTS
from calculator.page.answer import answer, glance
from calculator.plan import techniques

GPT2, LLAMA = "gpt2-s", "meta-llama/Llama-3.1-8B"
SHARDS = {"gpus": "8", "data_parallel": "fsdp", "precision": "mixed"}
# an option, its value, the model, and what stands beside it
STATES = [
    ("activation_offload", "pinned", GPT2, {"batch_size": "8", "checkpointing": "full"}),
    ("checkpointing", "full", GPT2, {"checkpoint_every": "4"}),
    ("checkpointing", "operations", "meta-llama/Llama-3.2-1B", {"sequence_length": "4096"}),
    ("chunked_loss", "torch", GPT2, {"batch_size": "8", "paged_optimizer": "true"}),
    ("data_parallel", "fsdp", GPT2, {"gpus": "8", "precision": "mixed"}),
    ("lora", "8", GPT2, {}),
    ("offload", "optimizer", GPT2, {"accumulation": "2"}),
    ("optimizer_bits", "8", GPT2, {}),
    ("quantization", "nf4", LLAMA, {"lora": "8", "sequence_length": "128"}),
    ("reversible", "true", GPT2, {}),
    ("sequence_parallel", "true", LLAMA, {"tensor_parallel": "8", "sequence_length": "512"}),
    ("sharing_groups", "2", GPT2, {}),
    ("context_parallel", "8", LLAMA, {"sequence_length": "16384", "gpus": "8", "gpu": "l4"}),
    ("cpu_offload", "true", GPT2, SHARDS),
    ("expert_parallel", "8", "mistralai/Mixtral-8x7B-v0.1", {"sequence_length": "128"}),
    ("paged_optimizer", "true", GPT2, {"optimizer_bits": "32"}),
    ("pipeline_parallel", "5", LLAMA, {"accumulation": "5", "pipeline_schedule": "gpipe"}),
    ("tensor_parallel", "8", LLAMA, {"sequence_length": "128"}),
    ("update_in_backward", "true", GPT2, {"sequence_length": "64"}),
]


def test_every_technique_is_among_them() -> None:
    assert {option for option, *_ in STATES} == {option.field for option in techniques()}


@pytest.mark.parametrize(("option", "value", "model", "beside"), STATES)
def test_a_technique_saves_what_the_step_without_it_takes_more(
    option: str, value: str, model: str, beside: dict[str, str]
) -> None:
    found = answer({"model": model, **beside, option: value})
    plain = answer({"model": model, **beside})
    (row,) = [row for row in found["savings"] if row["option"] == option]
    reports = [plain["report"], found["report"]]
    peaks = [report["gpu"]["peak"] for report in reports]
    assert row["gpu"] == peaks[0] - peaks[1] > 0
    # pages stand in RAM where the GPU has no room
    in_ram = [report["ram"]["peak"] + report["paged"]["bytes"] for report in reports]
    assert row["ram"] == in_ram[0] - in_ram[1]
    assert f"--{option.replace('_', '-')}" in found["command"]
    assert not [row for row in plain["savings"] if row["option"] == option]


def test_a_technique_that_another_one_needs_is_compared_with_nothing() -> None:
    found = answer({"model": GPT2, **SHARDS, "update_in_backward": "true"})
    assert [row["option"] for row in found["savings"]] == ["update_in_backward"]


def test_the_step_without_techniques_is_of_one_gpu_where_ddp_refuses_the_model() -> None:
    found = answer({"model": "bert-base", **SHARDS, "tied_embeddings": "false"})
    alone = answer({"model": "bert-base", "precision": "mixed", "tied_embeddings": "false"})
    assert found["baseline"] == alone["report"]


@pytest.mark.parametrize("name", {one.kind: name for name, one in CHECKPOINTS.items()}.values())
def test_the_page_answers_for_every_type(name: str) -> None:
    assert glance({"model": name})["report"]["gpu"]["peak"] > 0
