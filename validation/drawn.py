"""Random plans from the whole space of `Plan`'s fields, for any model type, on cards of four kinds.

An option brings those without which it says nothing. Whether anybody can run the plan is not asked:
most refusals of PyTorch and of the calculator are found this way.
"""

import random
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from calculator.cards import CARDS, TODAY
from calculator.errors import InputError
from calculator.models.model import CausalModel
from calculator.models.registry import TYPES
from calculator.options import Option
from calculator.plan import Plan
from validation.configuration import Configuration
from validation.subject import ROOT, find_subject

OLDER: Final = ("bert-base", "t5-small", "gpt2-s", "gpt-j-6b", "dalle-together")
LAYERS_OF_OLDER: Final = (3, 4)
BATCHES: Final = (1, 2, 3)
LENGTHS: Final = (48, 72, 96, 120)
LENGTHS_PACKED: Final = 200  # in batches of 8: bitsandbytes makes whole weights for many tokens
REPLICAS: Final = (2, 3, 4, 8, 64)
# cards that run other kernels; the first is that of all rows that name none
KINDS_OF_CARDS: Final = (TODAY, TODAY, *(CARDS[name] for name in ("t4", "rtx-4090", "h100")))
REPLICATED: Final = 0.25  # of the plans without data parallelism, the share that get some
COUNTS: Final = (1, 2, 2, 3, 3, 4, 5)  # options of a plan
RARE: Final = (
    *("reversible", "sharing_groups", "dropout", "format", "loop", "tied_embeddings"),
    *("pipeline_schedule", "pipeline_stages", "context_rotation", "sequence_parallel"),
    *("lora_bias", "lora_modules", "lora_dropout", "lora_targets"),
)
# tasks have rows of their own, see `task_rows.py`
TASKS: Final = ("task", "labels", "freeze", "mini_batch_size")
SIZES: Final = ("batch_size", "sequence_length", "target_length", "gpus")
INTEGERS: Final[Mapping[str, tuple[int, ...]]] = {
    "checkpoint_every": (2, 3),
    "sharing_groups": (1, 2),
    "accumulation": (2, 3, 4),
    "lora": (4, 8, 16),
    "tensor_parallel": (2, 2, 3),
    "pipeline_parallel": (2, 3, 4),
    "pipeline_stages": (2, 3),
    "context_parallel": (2, 2, 3, 4),
    "expert_parallel": (2, 4, 5),
}
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "lora_targets": ("all-linear",),
    "lora_modules": ("embed_tokens,lm_head", "embed_tokens", "lm_head"),
}
# what an option says nothing without; of several values one is drawn
BRINGS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "gradient_scaler": {"precision": ("amp",)},
    "paged_optimizer": {"optimizer": ("adam", "lion")},
    "checkpoint_every": {"checkpointing": ("full", "operations")},
    "activation_offload": {"checkpointing": ("full",)},
    "lora_targets": {"lora": INTEGERS["lora"]},
    "lora_dropout": {"lora": INTEGERS["lora"]},
    "lora_bias": {"lora": INTEGERS["lora"]},
    "lora_modules": {"lora": INTEGERS["lora"]},
    "quantization": {"lora": INTEGERS["lora"]},
    "lora": {"lora_targets": ("all-linear",)},
    "cpu_offload": {"data_parallel": ("fsdp", "zero2")},
    "sequence_parallel": {"tensor_parallel": (2,)},
    "context_rotation": {"context_parallel": (2, 4)},
    "pipeline_stages": {"pipeline_schedule": ("interleaved",)},
    "pipeline_schedule": {"pipeline_parallel": (2, 3)},
}
EXPERTS: Final = ("num_local_experts", "num_experts", "n_routed_experts")


def drawn(seed: int, count: int) -> list[Configuration]:
    """So many plans of a seed; a longer list begins with the shorter one."""
    return [*islice(_plans(random.Random(seed), random.Random(f"cards of {seed}")), count)]


def models() -> list[str]:
    """A model of every type, and more where a type has several kinds of layers."""
    configs = sorted((ROOT / "validation" / "configs").glob("*.json"))
    return [*OLDER, *(str(path.relative_to(ROOT)) for path in configs)]


def _plans(draw: random.Random, cards: random.Random) -> Iterator[Configuration]:
    names, options = models(), Plan.options()
    while True:
        name = draw.choice(names)
        values: dict[str, Any] = {}
        without = {*SIZES, *TASKS, *meaningless(name)}
        weights = [0 if each in without else 1 if each in RARE else 3 for each in options]
        for _ in range(draw.choice(COUNTS)):
            (field,) = draw.choices([*options], weights)
            _add(draw, values, field, _value(draw, options[field]))
        for field in [*values]:  # a later one may have taken the place of what it needs
            _add(draw, values, field, values[field])
        if "data_parallel" not in values and draw.random() < REPLICATED:
            values["data_parallel"] = draw.choice(("ddp", "fsdp"))
        depth = draw.choice(LAYERS_OF_OLDER) if name in OLDER else None
        values = sized(draw, name, values)
        try:
            yield Configuration(name, Plan.parse(values).on(cards.choice(KINDS_OF_CARDS)), depth)
        except InputError:  # a value that no plan has
            continue


def meaningless(name: str) -> Iterator[str]:
    """Options that say nothing of a model: experts, or an output layer after a single stack."""
    subject = find_subject(name, None)
    known = TYPES.get(subject.kind)
    if not any(subject.values.get(key) for key in EXPERTS):
        yield "expert_parallel"
    if known is None or not issubclass(known, CausalModel):
        yield from ("pipeline_parallel", "pipeline_schedule", "pipeline_stages", "chunked_loss")


def _value(draw: random.Random, option: Option) -> Any:
    """A value other than the default."""
    match option.kind:
        case "choice":
            default = getattr(Plan(), option.field)
            values = [value for value, _ in option.values if value != default]
            return draw.choice(values)
        case "flag":
            return True if option.field != "tied_embeddings" else draw.choice((True, False))
        case "number":
            return 0.1
        case "integer":
            return draw.choice(INTEGERS[option.field])
        case _:
            return draw.choice(NAMES[option.field])


def _add(draw: random.Random, values: dict[str, Any], field: str, value: Any) -> None:
    """Take an option, and what it says nothing without."""
    values[field] = value
    for other, choices in BRINGS.get(field, {}).items():
        if values.get(other) not in choices:
            _add(draw, values, other, draw.choice(choices))


def sized(draw: random.Random, name: str, values: dict[str, Any]) -> dict[str, Any]:
    """The same with a batch and lengths, micro-batches for all stages, and a number of GPUs."""
    values = {**values}
    subject = find_subject(name, None)
    known = TYPES.get(subject.kind)
    values["batch_size"] = draw.choice(BATCHES)
    if not (known and known.fixed_length):
        values["sequence_length"] = draw.choice(LENGTHS)
        if "quantization" in values:
            values |= {"batch_size": 8, "sequence_length": LENGTHS_PACKED}
        if subject.has_target:
            values["target_length"] = values["sequence_length"] * 3 // 4
    stages = values.get("pipeline_parallel", 1)
    if stages > 1:
        values["accumulation"] = stages * draw.choice((1, 1, 2))
    parts = values.get("context_parallel", 1)
    if parts > 1 and "sequence_length" in values:
        values["sequence_length"] = 48 * parts
    experts = next(filter(None, map(subject.values.get, EXPERTS)), 0)
    if "expert_parallel" in values and experts:
        values["expert_parallel"] = draw.choice([n for n in range(2, 9) if experts % n == 0])
        values["sequence_length"] = 60
    least = stages * parts * values.get("tensor_parallel", 1) * values.get("expert_parallel", 1)
    if "data_parallel" in values:
        values["gpus"] = least * draw.choice(REPLICAS)
    elif parts > 1:
        values["gpus"] = least
    return values
