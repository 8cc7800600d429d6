"""The models, GPUs and sources that the calculator knows by name.

The published checkpoints are loaded on first use, because most visits do not need them.
"""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from calculator.architecture import Architecture
from calculator.cards import CARDS as GPUS
from calculator.cards import Card as Gpu
from calculator.cards import find_card as find_gpu
from calculator.catalog.models import GROUPS, MODELS
from calculator.catalog.names import (
    begins_so,
    describe_shape,
    has_size,
    hub_id,
    is_of_the_line,
    of_the_same_size,
    same_shape,
)
from calculator.catalog.sources import SOURCES, Source
from calculator.errors import InputError, likeliest

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
    "known_shape",
]


def is_known(name: str) -> bool:
    """True if the catalog has a model of that name, whether or not it can be counted yet."""
    from calculator.catalog.checkpoints import CHECKPOINTS

    return name in MODELS or name in CHECKPOINTS


def find_model(name: str) -> Architecture:
    """The model of that name, or one of the same shape, with a note that says so.

    Raises:
        InputError: for an unknown name; it gives the closest name of a model of the same size, or
            the names that begin so.
    """
    if name in MODELS:
        return MODELS[name]
    from calculator.catalog.checkpoints import CHECKPOINTS

    if name in CHECKPOINTS:
        return _architecture(CHECKPOINTS[name])
    if (found := known_shape(name)) is None:
        raise _unknown(name)
    architecture = find_model(found)
    if found.lower() in (name.lower(), hub_id(name).lower()):
        return architecture
    note = f"{describe_shape(name, found)} {architecture.note}".strip()
    return replace(architecture, note=note)


def _unknown(name: str) -> InputError:
    from calculator.catalog.checkpoints import CHECKPOINTS

    titles = {known.lower().rpartition("/")[2]: known for known in [*MODELS, *CHECKPOINTS]}
    begun = [known for known in titles.values() if begins_so(name, known)]
    alike = [title for title in titles if is_of_the_line(name, title)][::-1]
    near = likeliest(name.lower().rpartition("/")[2], of_the_same_size(name, alike))
    hint = f"did you mean '{titles[near]}'? " if near else ""
    if len(begun) == 1:
        hint = f"did you mean '{begun[0]}'? "
    elif begun and not has_size(name):
        # the newest first, but last those of small series with long names
        newest = begun[::-1]
        ordered = sorted(newest, key=lambda known: known.count("_") > 1)
        hint = f"say which: {', '.join(ordered[:5])}{' ...' * (len(begun) > 5)}; "
    rule = "must be a name that `models` lists, a name on the Hub, or a config.json"
    return InputError("model", name, f"{hint}{rule}")


def known_shape(name: str) -> str | None:
    """The name of the catalog's model with the shape of the one that is named, if it has one."""
    from calculator.catalog.checkpoints import CHECKPOINTS, SAME_SHAPE

    found = same_shape(name, MODELS) or same_shape(name, [*CHECKPOINTS, *SAME_SHAPE])
    return SAME_SHAPE.get(found, found) if found else None


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
