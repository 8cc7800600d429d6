"""What the calculator's page needs: the form's options and the default result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from calculator import protocol
from calculator.architecture import Architecture, Family
from calculator.catalog import GPUS, MODELS
from calculator.techniques import OPTIONS, Option, Plan

FAMILIES = {
    Family.BERT: "BERT",
    Family.T5: "T5",
    Family.GPT2: "GPT-2 and GPT-3",
    Family.GPTJ: "GPT-J",
    Family.DALLE: "DALL-E",
}


@dataclass(frozen=True, slots=True)
class Group:
    """A fieldset of the form; a folded one opens on demand."""

    title: str
    fields: tuple[str, ...]
    folded: bool = False

    @property
    def options(self) -> list[Option]:
        """The options in the order the form shows them."""
        return [OPTIONS[field] for field in self.fields]


GROUPS = (
    Group("Batch", ("batch_size", "sequence_length", "target_length")),
    Group("Precision and optimizer", ("precision", "optimizer", "optimizer_bits")),
    Group("Saving memory", ("checkpointing", "offload", "sharing_groups", "reversible")),
    Group(
        "More options",
        ("attention", "update", "dropout", "accumulation", "tied_embeddings"),
        folded=True,
    ),
)

# Minimum, maximum and step of a slider; the number field beside it takes every allowed value.
SLIDERS = {
    "batch_size": (1, 64, 1),
    "sequence_length": (32, 4096, 32),
    "target_length": (32, 4096, 32),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of memory, in the words that stand beside its figure."""

    key: str
    label: str
    words: str


PARTS = (
    Part("weights", "Weights", "The numbers being trained."),
    Part("gradients", "Gradients", "How the loss changes with each weight."),
    Part("optimizer", "Optimizer states", "What the optimizer remembers of each weight."),
    Part("activations", "Activations", "What the forward pass keeps for the backward pass."),
    Part("temporaries", "Temporaries", "What one operation needs while it runs."),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """One of the four moments of a step, in words."""

    name: str
    label: str
    words: str


MOMENTS = (
    Moment("forward", "Forward", "Layer after layer, activations pile up."),
    Moment("loss", "Loss", "Every token gets a score for every word of the vocabulary."),
    Moment("backward", "Backward", "Layer by layer back: activations go, gradients come."),
    Moment("update", "Update", "The optimizer changes the weights."),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure beside those of the GPU, and its path in a report."""

    path: str
    label: str
    words: str
    in_bytes: bool = True


OTHER_ROWS = (
    Row("parameters", "Parameters", "Numbers that are trained; shared ones count once.", False),
    Row("ram.peak", "RAM", "What offload keeps in the computer's own memory."),
    Row("transfer.to_ram", "Moved to RAM", "Over the bus, in each step."),
    Row("transfer.to_gpu", "Moved to the GPU", "Over the bus, in each step."),
)


def ask(method: str, **params: object) -> Any:
    """The value that `calculator.protocol` answers.

    Raises:
        ValueError: when it answers with an error.

    """
    answer = json.loads(protocol.handle(json.dumps({"id": 0, "method": method, "params": params})))
    if answer["kind"] != "result":
        raise ValueError(f"{method} {params}: {answer['error']['message']}")
    return answer["value"]


def look_up(value: Mapping[str, Any] | Sequence[Any], path: str) -> Any:
    """What stands at a dotted `path`, as calculator.js looks it up.

    >>> look_up({"moments": [{"gpu": 5}]}, "moments.0.gpu")
    5
    """
    found: Any = value
    for name in path.split("."):
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def families() -> list[tuple[str, list[Architecture]]]:
    """The models by family, as the form lists them."""
    return [
        (title, [model for model in MODELS.values() if model.family is family])
        for family, title in FAMILIES.items()
    ]


def context() -> dict[str, object]:
    """The names that `pages/calculator.md.j2` uses."""
    value = ask("answer")
    figures: Mapping[str, str] = value["figures"]

    def lengths(names_and_paths: str) -> str:
        pairs = (pair.split(":") for pair in names_and_paths.split())
        style = ";".join(f"--{name}:{look_up(value, path):d}" for name, path in pairs)
        return f'data-lengths="{names_and_paths}" style="{style}"'

    plan = value["report"]["plan"]

    def words(field: str) -> str:
        return dict(OPTIONS[field].choices)[plan[field]]

    return {
        "value": value,
        "plan": plan,
        "words": words,
        "parts": PARTS,
        "moment_rows": MOMENTS,
        "other_rows": OTHER_ROWS,
        "groups": GROUPS,
        "sliders": SLIDERS,
        "families": families(),
        "gpus": GPUS.values(),
        "models": ask("models"),
        "models_own": {field.name for field in fields(Plan) if field.default is None},
        "text": figures.__getitem__,
        "lengths": lengths,
    }
