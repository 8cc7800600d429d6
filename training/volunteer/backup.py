"""A volunteer's own copy of the training state: to come back with, or to go back to."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from training.averaging.state import TrainingState
from training.run import atomic
from training.run.status import first_line

Say = Callable[[str], object]


@dataclass(frozen=True)
class Backup:
    """A volunteer's backup: the training state and its place in the data."""

    state: TrainingState
    stream: dict[str, Any]


def save(path: Path, backup: Backup, say: Say = print) -> None:
    """Write a backup to disk at once; a crash leaves the one before."""
    save_memory(path, vars(backup.state) | {"stream": backup.stream}, say)


def load(path: Path, parameters: Sequence[torch.Tensor]) -> Backup | None:
    """Read the backup; None where there is none, or it is broken or of another model."""
    content = load_memory(path)
    try:
        state = TrainingState(
            int(content["epoch"]), list(content["optimizer_metadata"]), list(content["tensors"])
        )
        shapes = [tensor.shape for tensor in state.tensors[: len(parameters)]]
        fits = shapes == [parameter.shape for parameter in parameters]
        sound = fits and state.is_sound(len(parameters))
        return Backup(state, dict(content["stream"])) if sound else None
    except _BROKEN:
        return None


def save_memory(path: Path, memory: Mapping[str, Any], say: Say = print) -> None:
    """Write at once what a volunteer goes on with.

    Args:
        say: told when it can't be written; the one before stays, and the volunteer goes on.
    """
    try:
        with atomic.replacing(path) as temporary:
            torch.save(dict(memory), temporary)
    except (OSError, RuntimeError) as error:  # torch's writer raises the latter
        say(f"the backup could not be written ({first_line(error)}): the one before stays")


def load_memory(path: Path) -> dict[str, Any]:
    """Read it; empty where there is none, or it is broken."""
    if not path.exists():
        return {}
    try:
        return dict(torch.load(path, weights_only=True))
    except _BROKEN:
        return {}


_BROKEN = (  # all that torch and its unpickler raise on bytes that are none of theirs
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)
