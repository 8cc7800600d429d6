"""Predictions of other calculators, made by running them, beside measured or exact figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.plan import Attention, Plan
from calculator.resolution import resolve
from validation.compare import Comparison

FILE: Final = Path(__file__).with_name("peers.jsonl")
KERNELS: Final = (Attention.EAGER, Attention.SDPA)


@dataclass(frozen=True, slots=True)
class Peer:
    """A calculator that others have made, and what it is for."""

    name: str
    title: str
    address: str
    purpose: str


PEERS: Final = (
    Peer(
        "training-transformers-together/calc",
        "The 2021 demonstration's calculator",
        "https://github.com/training-transformers-together/calc",
        "Shows at a glance how the techniques of the 2021 run work together: half precision, "
        "8-bit states, offload, checkpointing and shared layers, on one page. It is meant for "
        "seeing which technique helps and by how much, and this project follows it.",
    ),
    Peer(
        "EleutherAI/cookbook calc_transformer_mem",
        "EleutherAI's cookbook",
        "https://github.com/EleutherAI/cookbook",
        "Plans the training of large GPT-like models with Megatron and DeepSpeed on many GPUs: "
        "tensor and pipeline parallelism, ZeRO, mixtures of experts, inference caches, none of "
        "which ours knows. It counts the activations of Megatron's fused kernels, not of Hugging "
        "Face's classes, so one GPU with those classes is not what it was written for.",
    ),
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One calculator's total for one configuration, in bytes."""

    calculator: str
    version: str
    model: str
    options: Mapping[str, Any]
    total: int

    def plan(self, attention: Attention) -> Plan:
        """The configuration with an attention kernel, which no peer asks for."""
        return Plan.parse({**self.options, "attention": attention.value})


def read_predictions(path: Path = FILE) -> list[Prediction]:
    """Every row of the file."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        options = {name: value for name, value in row["config"].items() if name != "model"}
        model = row["config"]["model"]
        found.append(Prediction(row["calculator"], row["version"], model, options, row["total"]))
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """A prediction beside the reference of each kernel: bytes, and whether they were measured."""

    prediction: Prediction
    family: str
    references: Mapping[Attention, int]
    measured: Mapping[Attention, bool]

    def error(self, attention: Attention) -> float:
        """Relative error of the total, below zero when it is too low."""
        return self.prediction.total / self.references[attention] - 1


def score(predictions: Sequence[Prediction], comparisons: Sequence[Comparison]) -> list[Score]:
    """Each prediction beside a measured peak, or the calculator's where none is."""
    rows = {(item.configuration.architecture, item.report.plan): item for item in comparisons}

    @cache
    def reference(model: str, plan: Plan) -> tuple[int, bool]:
        architecture = find_model(model)
        if row := rows.get((architecture, resolve(architecture, plan))):
            return row.measured, True
        return estimate(architecture, plan).gpu.total, False

    found = []
    for prediction in predictions:
        pairs = {kernel: reference(prediction.model, prediction.plan(kernel)) for kernel in KERNELS}
        found.append(
            Score(
                prediction,
                find_model(prediction.model).family,
                {kernel: size for kernel, (size, _) in pairs.items()},
                {kernel: measured for kernel, (_, measured) in pairs.items()},
            )
        )
    return found
