"""The models, GPUs and sources that the calculator knows by name.

The published checkpoints are loaded on first use, because most visits do not need them.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from calculator.architecture import Architecture
from calculator.cards import CARDS as GPUS
from calculator.cards import Card as Gpu
from calculator.cards import find_card as find_gpu
from calculator.catalog.models import GROUPS, MODELS
from calculator.catalog.sources import SOURCES, Source
from calculator.errors import InputError, unknown_name

if TYPE_CHECKING:
    from calculator.catalog.checkpoints import Checkpoint

__all__ = [
    "GPUS",
    "MODELS",
    "SOURCES",
    "Gpu",
    "Source",
    "find_gpu",
    "find_model",
    "groups",
    "is_known",
]


def is_known(name: str) -> bool:
    """True if the catalog has a model of that name, whether or not it can be counted yet."""
    from calculator.catalog.checkpoints import CHECKPOINTS

    return name in MODELS or name in CHECKPOINTS


def find_model(name: str) -> Architecture:
    """The model of that name, or `InputError` with the closest name that exists."""
    if name in MODELS:
        return MODELS[name]
    from calculator.catalog.checkpoints import CHECKPOINTS

    if name in CHECKPOINTS:
        return _architecture(CHECKPOINTS[name])
    close = unknown_name("model", name, [*MODELS, *CHECKPOINTS]).rule
    hint = close[: close.index("must be one of")]
    raise InputError("model", name, f"{hint}must be a name that `models` lists, or a config.json")


@lru_cache(maxsize=512)
def _architecture(checkpoint: "Checkpoint") -> Architecture:
    """A checkpoint's architecture.

    Raises:
        InputError: for one that the calculator cannot count yet.
    """
    from calculator.hf_config import can_read, from_config

    if not can_read(checkpoint.kind):
        rule = f"is of type {checkpoint.kind}, which the calculator cannot count yet"
        raise InputError("model", checkpoint.name, rule)
    return from_config(checkpoint.values, checkpoint.name, checkpoint.title)


def _is_counted(checkpoint: "Checkpoint") -> bool:
    try:
        _architecture(checkpoint)
    except InputError:  # a type, or an activation of a known type, that has no code yet
        return False
    return True


@lru_cache(maxsize=1)
def groups() -> dict[str, list[Architecture]]:
    """The models that can be counted, by group: the six original families first."""
    from calculator.catalog.checkpoints import CHECKPOINTS

    found = {group: [MODELS[name] for name in names] for group, names in GROUPS.items()}
    for checkpoint in CHECKPOINTS.values():
        if _is_counted(checkpoint):
            found.setdefault(checkpoint.group, []).append(_architecture(checkpoint))
    return found
