"""Options that the calculator does not support for a model: it ignores them and names each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from calculator.architecture import Architecture
from calculator.doors.settle import Understood
from calculator.doors.table import Note, Way
from calculator.errors import InputError
from calculator.resolution import resolve
from calculator.techniques.lora import ALL_LINEAR

MOST_RELAXED: Final = 20
# what a run is counted without where a model or another choice excludes it, and what it takes then
_RELAXED: Final[Mapping[str, Way]] = {
    "attention": "",
    "chunked_loss": "less",
    "optimizer_bits": "less",
    "paged_optimizer": "less",
    "activation_offload": "less",
    "lora_targets": "more",
    "lora_modules": "more",
    "optimizer": "less",
    "update_in_backward": "less",
}


def relaxed(architecture: Architecture, run: Understood, given: Mapping[str, object]) -> Understood:
    """The run without choices that the calculator has not for this model, and notes that say so."""
    for _ in range(MOST_RELAXED):
        try:
            resolve(architecture, run.plan)
        except InputError as error:
            if error.field not in _RELAXED or error.field in given:
                raise
            words = f"is not supported for this model, so it is ignored: {error.rule}"
            note = Note("", error.field, error.value, words, _RELAXED[error.field])
            left = dict(run.options)
            if (rest := _without(left.pop(error.field, ""), error.value)) is not None:
                left[error.field] = rest
            run = replace(run, options=left, notes=(*run.notes, note))
    return run


def _without(value: object, refused: str) -> str | None:
    """A list of names without one of them; any other value gives way to the default."""
    names = str(value).split(",")
    if not refused:  # peft has no default
        return ALL_LINEAR
    rest = [name for name in names if name != refused]
    return ",".join(rest) if 0 < len(rest) < len(names) else None
