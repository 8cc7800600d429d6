"""The values of a Hugging Face config.json -> Architecture."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from calculator.architecture import Architecture
from calculator.configuration import Configuration, labels_of
from calculator.errors import InputError, one_line
from calculator.models.registry import ALIKE, TYPES
from calculator.packing import packing_note
from calculator.task import OWN_HEAD, Task, class_for, task_named

# Beginnings of keys about what a model of pictures and text has beside its text model.
_BESIDE_TEXT: Final = ("vision_", "image_", "video_", "audio_")


def can_read(kind: object) -> bool:
    """True if the calculator has code for a ``model_type``."""
    return isinstance(kind, str) and kind in TYPES and bool(TYPES[kind].counted)


def from_config(config: Mapping[str, object], name: str, title: str = "") -> Architecture:
    """The architecture of a config's values; absent ones and null are transformers' defaults.

    Raises:
        InputError: for a value or a key that the calculator cannot count.
    """
    text = text_model(config)
    kind = text.get("model_type")
    if not isinstance(kind, str) or not can_read(kind):
        rule = f"model_type must be one of: {', '.join(filter(can_read, TYPES))}"
        raise InputError("model_type", config.get("model_type"), rule)
    values = Configuration(text)
    packed = values.value("quantization_config")
    packed = config.get("quantization_config") if packed is None else packed
    values.only("output_attentions", False)
    values.only("output_hidden_states", False)
    values.only("chunk_size_feed_forward", 0)
    architecture = _with_task(TYPES[kind].read(values, name), values)
    values.check_all_understood()
    counted = class_for(Task(architecture.task), TYPES[kind].counted)
    note = _class_note(values, counted) if text is config else _inner_note(config, counted)
    return _described(architecture, title or name, f"{note} {packing_note(packed)}")


def _with_task(architecture: Architecture, values: Configuration) -> Architecture:
    """The architecture with the task and the labels of the class that a config names."""
    classes = values.value("architectures")
    names = [one for one in classes if isinstance(one, str)] if isinstance(classes, list) else []
    task = task_named(names)
    kind = TYPES[architecture.family]
    labels = 2 if kind.own_task is Task.IMAGE else labels_of(values)
    if task is None or task not in kind.heads:
        return replace(architecture, labels=labels)
    note = "" if architecture.note.startswith(OWN_HEAD) else architecture.note
    counted = class_for(task, kind.counted)
    words = f"Its config.json names {counted}, which is counted: choose another task under Task."
    return replace(architecture, task=task.value, labels=labels, note=f"{note} {words}".strip())


def text_model(config: Mapping[str, object]) -> Mapping[str, object]:
    """The values of the model that is counted: of a larger model's, those of its text model.

    A type that has the layers of another gets that one's name. Of any other type the config is
    returned as it is.

    Source: transformers (configuration_utils.py, from_pretrained)
    """
    text = config.get("text_config")
    if not can_read(config.get("model_type")) and isinstance(text, Mapping):
        inner = _alike(text)
        return inner if can_read(inner.get("model_type")) else config
    return _alike(config)


def _alike(config: Mapping[str, object]) -> Mapping[str, object]:
    """The values as the type reads them that has the same layers."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in ALIKE:
        return config
    found = {key: value for key, value in config.items() if not key.startswith(_BESIDE_TEXT)}
    scaling = found.get("rope_scaling")
    if isinstance(scaling, Mapping) and "mrope_section" in scaling:
        del found["rope_scaling"]  # places of a picture's parts: tables of the same size
    return {**found, "model_type": ALIKE[kind], "architectures": None}


def _inner_note(config: Mapping[str, object], counted: str) -> str:
    """A note on the part of a larger model, or the type, that is counted."""
    kind = one_line(config.get("model_type"))
    text = config.get("text_config")
    if not isinstance(text, Mapping) and "vision_config" not in config:
        return f"The configuration is of {kind}; counted is {counted}, which has its layers."
    return (
        f"The configuration is of {kind}; counted is its text model alone, {counted}, as that "
        "class reads the configuration. What it has for pictures is not counted."
    )


def _class_note(values: Configuration, counted: str) -> str:
    """A note on the class that is counted, if the config names another."""
    named = values.value("architectures")
    if named is None:
        return ""
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise InputError("architectures", named, "must be a list of names of classes")
    if not named or counted in named:
        return ""
    return f"The configuration names {one_line(named[0])}; counted is {counted}."


def _described(architecture: Architecture, title: str, note: str) -> Architecture:
    return replace(architecture, title=title, note=f"{architecture.note} {note}".strip())
