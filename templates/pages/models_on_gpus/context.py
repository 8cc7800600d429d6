"""Data for 'Models on GPUs': for each model and GPU, whether a step fits and what would help.

One table is for training the whole model, the other for adapters beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.catalog import GPUS, MODELS, Gpu, find_model
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.page.states import chosen
from calculator.plan import Checkpointing, Plan, Precision
from calculator.planner.change import Cost
from calculator.planner.fit import Proposal, fits_on, least_changes
from calculator.planner.pace import pace_of
from calculator.presets import USUAL_RANK
from calculator.resolution import resolve
from calculator.techniques.lora import ALL_LINEAR
from calculator.units import format_bytes, format_count, format_seconds
from templates.pieces.comparisons import Recorded

# popular models besides those in `MODELS`, the newest first
CHECKPOINTS = (
    "google/gemma-3-270m",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-4B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-14B",
    "allenai/OLMo-2-0425-1B",
    "google/gemma-3-1b-pt",
    "google/gemma-3-4b-pt",
    "microsoft/Phi-4-mini-instruct",
    "answerdotai/ModernBERT-base",
    "HuggingFaceTB/SmolLM2-135M",
    "HuggingFaceTB/SmolLM2-1.7B",
    "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B",
    "meta-llama/Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "microsoft/phi-2",
    "mistralai/Mistral-7B-v0.1",
    "EleutherAI/pythia-410m",
    "facebook/opt-1.3b",
    "EleutherAI/gpt-neox-20b",
    "FacebookAI/roberta-base",
)
SHOWN = ("rtx-3070", "rtx-3060", "t4", "rtx-4090", "v100-32", "l40s", "a100-80", "h200")
ON_A_PHONE = "t4"  # the GPU of free notebooks: a narrow screen's only column at first
NOTHING = "–"
# a small data set for fine-tuning: what each cell's time is for
TOKENS = 10_000_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A GPU's cell: its text, a link to the calculator's state, and its rank for sorting.

    Attributes:
        kind: "fits", "change" or "no", for its look.
        rank: 0 where the step fits, more the more is to change.
        time: of `TOKENS` tokens, by the clock; empty where it has no answer.
    """

    words: str
    kind: str
    rank: int
    query: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A model and a cell for each GPU."""

    title: str
    query: str
    parameters: int
    tokens: int
    peak: int
    cells: tuple[Cell, ...]

    @property
    def texts(self) -> tuple[str, str, str]:
        """Parameters, tokens and peak in words."""
        return format_count(self.parameters), format_count(self.tokens), format_bytes(self.peak)


@dataclass(frozen=True, slots=True)
class Training:
    """A table: what is trained, and the plan for it."""

    name: str
    title: str
    plan: Plan


TRAININGS = (
    Training("full", "Full training", Plan()),
    Training(  # the calculator's preset
        "lora",
        "LoRA",
        Plan(
            precision=Precision.HALF,
            optimizer_bits=8,
            checkpointing=Checkpointing.FULL,
            lora=USUAL_RANK,
            lora_targets=ALL_LINEAR,
        ),
    ),
)


@cache
def rows(training: Training) -> tuple[Row, ...]:
    """One row per model that can be trained so."""
    return tuple(TABLES[training.name].results())


def _models(training: Training) -> list[tuple[str, Plan]]:
    return [
        (architecture.name, training.plan)
        for architecture in map(find_model, (*CHECKPOINTS, *MODELS))
        if can_train(architecture, training)
    ]


def without(training: Training) -> Iterator[str]:
    """Titles of the models that cannot be trained so."""
    for architecture in map(find_model, (*CHECKPOINTS, *MODELS)):
        if not can_train(architecture, training):
            yield architecture.title


def can_train(architecture: Architecture, training: Training) -> bool:
    """True if the model can be trained so; LoRA is counted in transformers' classes."""
    try:
        resolve(architecture, training.plan)
    except InputError:
        return False
    return True


def row(model: tuple[str, Plan]) -> Row:
    """The row of a model's name and a plan."""
    architecture, plan = find_model(model[0]), model[1]
    gpus = [GPUS[name] for name in SHOWN]
    report = estimate(architecture, plan)
    least = least_changes(architecture, plan, gpus)
    return Row(
        architecture.title,
        _query(architecture, plan, None),
        report.parameters,
        report.plan.sequence_length,
        report.gpu.total,
        tuple(_cell(architecture, plan, gpu, least.get(gpu.name)) for gpu in gpus),
    )


def _cell(architecture: Architecture, plan: Plan, gpu: Gpu, least: Proposal | None) -> Cell:
    if fits_on(architecture, plan, gpu):
        query = _query(architecture, plan, gpu)
        return Cell("fits", "fits", 0, query, _time(architecture, plan.on(gpu)))
    if least is None:
        return Cell(NOTHING, "no", len(Cost) * 10, _query(architecture, plan, gpu))
    words = " + ".join(change.short for change in least.changes)
    rank = 10 * len(least.changes) + least.cost
    query = _query(architecture, least.plan, gpu)
    return Cell(words, "change", rank, query, _time(architecture, least.plan.on(gpu)))


def _time(architecture: Architecture, plan: Plan) -> str:
    pace = pace_of(architecture, plan)
    return format_seconds(TOKENS / pace.tokens_per_second) if pace else ""


def _loaded(found: dict[str, Any]) -> Row:
    return Row(**found | {"cells": tuple(Cell(**cell) for cell in found["cells"])})


def _query(architecture: Architecture, plan: Plan, gpu: Gpu | None) -> str:
    return urlencode(chosen(architecture, plan, {"gpu": gpu.name} if gpu else {}))


TABLES = {
    each.name: Recorded(f"models-{each.name}", row, partial(_models, each), load=_loaded)
    for each in TRAININGS
}


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "tables": [(training, rows(training)) for training in TRAININGS],
        "without": {training.name: list(without(training)) for training in TRAININGS},
        "rank": USUAL_RANK,
        "on_a_phone": ON_A_PHONE,
        "gpus": [(gpu, format_bytes(gpu.memory)) for gpu in (GPUS[name] for name in SHOWN)],
        "tokens": format_count(TOKENS),
        "usual_length": format_count(USUAL_LENGTH),
    }
