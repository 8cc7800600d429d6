"""Which configurations are measured: each model and option alone, then drawn pairs and triples."""

import random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from calculator.architecture import Family
from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.techniques import Plan
from validation.configuration import Configuration

SEED: Final = 2021
DRAWN_PAIRS: Final = 130
DRAWN_TRIPLES: Final = 130
REPRESENTATIVES: Final = ("bert-large", "t5-base", "gpt2-m", "gpt-j-6b", "dalle-together")

# Options are tried on shallow stacks, which cost less to measure and in which a wrong layer weighs
# more; models and shapes are measured at full depth.
DEPTHS: Final = (5, 6, 7, 9)

BATCHES: Final = (1, 2, 3, 4, 8)
LENGTHS: Final = (64, 100, 128, 256, 384, 500, 512, 768, 1000, 1024, 1536, 2048)

OPTIMIZERS: Final[tuple[dict[str, Any], ...]] = (
    {"optimizer": "adam", "update": "fused"},
    {"optimizer": "adam", "update": "loop"},
    {"optimizer": "adam", "optimizer_bits": 8},
    {"optimizer": "adam", "optimizer_bits": 32},
    {"optimizer": "lamb", "optimizer_bits": 32},
    {"optimizer": "lamb", "optimizer_bits": 8},
    {"optimizer": "lion", "optimizer_bits": 32},
    {"optimizer": "lion", "optimizer_bits": 8},
    {"optimizer": "sgd"},
    {"optimizer": "sgd", "update": "fused"},
    {"optimizer": "sgd", "update": "loop"},
    {"optimizer": "momentum"},
    {"optimizer": "momentum", "update": "fused"},
    {"optimizer": "momentum", "update": "loop"},
    {"optimizer": "momentum", "optimizer_bits": 8},
    {"optimizer": "adafactor"},
    {"optimizer": "adafactor", "update": "loop"},
)

TECHNIQUES: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "precision": tuple({"precision": name} for name in ("fp32", "mixed", "half")),
    "optimizer": OPTIMIZERS,
    "attention": tuple({"attention": name} for name in ("eager", "flash", "efficient", "math")),
    "checkpointing": tuple({"checkpointing": name} for name in ("full", "selective")),
    "offload": ({"offload": "optimizer"},),
    "sharing_groups": tuple({"sharing_groups": count} for count in (1, 2, 3, 4)),
    "reversible": ({"reversible": True}, {"reversible": False}),
    "dropout": tuple({"dropout": share} for share in (0.0, 0.1, 0.2)),
    "accumulation": tuple({"accumulation": count} for count in (2, 4)),
    "tied_embeddings": ({"tied_embeddings": False}, {"tied_embeddings": True}),
}


def grid() -> list[Configuration]:
    """All configurations, each once, in an order that never changes and soon shows all kinds."""
    listed = (*_models(), *_alone(), *_shapes(), *_drawn())
    found = {(item.architecture, item.resolved): item for item in reversed(listed)}
    configurations = list(found.values())
    random.Random(SEED).shuffle(configurations)
    return configurations


def _models() -> Iterator[Configuration]:
    """Every model at its defaults, in every precision, and checkpointed."""
    for model in MODELS:
        yield from _valid(model, {})
        for choice in TECHNIQUES["precision"]:
            yield from _valid(model, choice)
        yield from _valid(model, {"checkpointing": "full"})


def _alone() -> Iterator[Configuration]:
    """One model of each family with each value of each option, some in fp32 too."""
    for model in REPRESENTATIVES:
        for name, choices in TECHNIQUES.items():
            for choice in choices:
                yield from _valid(model, choice, DEPTHS[1])
                if name in ("attention", "checkpointing", "dropout", "sharing_groups"):
                    fp32 = {"batch_size": 2, "precision": "fp32", **choice}
                    yield from _valid(model, fp32, DEPTHS[1])


def _shapes() -> Iterator[Configuration]:
    """Batches and lengths away from the defaults."""
    draw = random.Random(SEED)
    for model in MODELS:
        for _ in range(3):
            yield from _valid(model, _shape(draw, model))


def _drawn() -> Iterator[Configuration]:
    """Pairs and triples of options with a fixed seed, at drawn batches and lengths."""
    draw = random.Random(SEED + 1)
    yield from islice(_combinations(draw, 2), DRAWN_PAIRS)
    yield from islice(_combinations(draw, 3), DRAWN_TRIPLES)


def _combinations(draw: random.Random, count: int) -> Iterator[Configuration]:
    while True:
        model = draw.choice(list(MODELS))
        options = _shape(draw, model)
        for name in draw.sample(list(TECHNIQUES), count):
            options |= draw.choice(TECHNIQUES[name])
        yield from _valid(model, options, draw.choice(DEPTHS))


def _shape(draw: random.Random, model: str) -> dict[str, Any]:
    architecture = MODELS[model]
    if architecture.family is Family.DALLE:
        return {"batch_size": draw.choice(BATCHES)}
    longest = architecture.positions or 2048
    lengths = [length for length in LENGTHS if length <= longest]
    shape = {"batch_size": draw.choice(BATCHES), "sequence_length": draw.choice(lengths)}
    if architecture.family is Family.T5:
        shape["target_length"] = draw.choice(lengths)
    return shape


def _valid(
    model: str, options: dict[str, Any], layers: int | None = None
) -> Iterable[Configuration]:
    """The configuration where the model and a real optimizer have code for it."""
    from validation.session import check

    configuration = Configuration(model, Plan.parse(options), layers)
    try:
        check(configuration)
    except InputError:
        return []
    return [configuration]
