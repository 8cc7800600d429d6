"""Random states of the calculator's form, the same ones at every run."""

import random

from calculator.catalog import GPUS, MODELS
from calculator.options import Option
from calculator.plan import Plan

SEED = 2021
# options that refuse most of the others: few states have them
SEVERAL_GPUS = (
    *("gpus", "data_parallel", "cpu_offload", "tensor_parallel", "sequence_parallel"),
    *("expert_parallel", "context_parallel", "context_rotation"),
    *("pipeline_parallel", "pipeline_schedule", "pipeline_stages"),
)
# options that go with few of the others: rarely drawn, or in states of their own
RARE = ("lora", "quanti", "update_in", "paged", "task", "labels", "freeze")
OWN_STATES = (
    {"model": "bert-base", "task": "sequence", "labels": "3", "freeze": "embeddings"},
    {"model": "gpt2-s", "batch_size": "4", "chunked_loss": "torch"},
    {"model": "gpt2-m", "checkpointing": "full", "activation_offload": "pinned"},
    {"model": "gpt2-m", "checkpointing": "full", "checkpoint_every": "3"},
    {"model": "gpt2-l", "optimizer_bits": "8", "paged_optimizer": "true"},
    {"model": "gpt2-s", "sequence_length": "512", "gradient_scaler": "true"},
    {"model": "Qwen/Qwen2.5-0.5B", "sequence_length": "512", "checkpointing": "operations"},
    {"model": "Qwen/Qwen2.5-0.5B", "sequence_length": "256", "tensor_parallel": "2"},
    {
        "model": "Qwen/Qwen3-30B-A3B",
        "sequence_length": "256",
        "precision": "half",
        "expert_parallel": "8",
    },
    {
        "model": "HuggingFaceTB/SmolLM2-360M",
        "sequence_length": "128",
        "tied_embeddings": "false",
        "pipeline_parallel": "2",
        "accumulation": "3",
    },
    {
        "model": "HuggingFaceTB/SmolLM2-135M",
        "sequence_length": "128",
        "tied_embeddings": "false",
        "pipeline_parallel": "2",
        "pipeline_schedule": "interleaved",
        "accumulation": "4",
    },
    {
        "model": "Qwen/Qwen2.5-0.5B",
        "sequence_length": "128",
        "tensor_parallel": "2",
        "sequence_parallel": "true",
    },
    {
        "model": "meta-llama/Llama-3.1-8B",
        "sequence_length": "32768",
        "gpus": "8",
        "data_parallel": "fsdp",
        "precision": "mixed",
        "checkpointing": "full",
        "context_parallel": "4",
    },
)
NOT_DRAWN = (
    *SEVERAL_GPUS,
    *("chunked_loss", "activation_offload", "checkpoint_every", "gradient_scaler"),
)


def random_states(count: int) -> list[dict[str, str]]:
    """`count` states as the page's address holds them: a model, a GPU, and some of the options.

    Not every one is allowed: the page then has to show Python's error.
    """
    chance = random.Random(SEED)  # repeatable, not secret
    states = [_random_state(chance) for _ in range(count)]
    for state in states[5::10]:
        state["gpus"] = str(chance.choice([2, 3, 8]))
        state["data_parallel"] = _random_value(Plan.options()["data_parallel"], chance)
    places = (*range(9, count, 10), *range(7, count, 10))
    for place, state in zip(places, OWN_STATES, strict=False):
        states[place] = {"gpu": "a100-80", **state}
    return states


def _random_state(chance: random.Random) -> dict[str, str]:
    state = {"model": chance.choice(list(MODELS))}
    if chance.random() < 0.3:
        state["gpu_memory"] = str(chance.choice([4, 7.5, 12, 48, 640]))
    else:
        state["gpu"] = chance.choice(list(GPUS))
    for option in Plan.options().values():
        if option.field in NOT_DRAWN:
            continue
        if chance.random() < (0.05 if option.field.startswith(RARE) else 0.4):
            state[option.field] = _random_value(option, chance)
    return state


def _random_value(option: Option, chance: random.Random) -> str:
    match option.kind:
        case "choice":
            return chance.choice(option.choices)[0]
        case "flag":
            return chance.choice(["true", "false"])
        case "number":
            return chance.choice(["0", "0.05", "0.1"])
        case "integer":
            return str(chance.choice([1, 2, 3, 4, 8, 17, 64]))
        case "names":
            return chance.choice(["all-linear", "q_proj"])
