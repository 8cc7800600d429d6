"""The values of a Hugging Face config.json -> Architecture."""

from collections.abc import Mapping
from dataclasses import replace

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.errors import InputError, one_line
from calculator.models.registry import TYPES


def can_read(kind: object) -> bool:
    """True if the calculator has code for a ``model_type``."""
    return isinstance(kind, str) and kind in TYPES and bool(TYPES[kind].counted)


def from_config(config: Mapping[str, object], name: str, title: str = "") -> Architecture:
    """The architecture of a config's values; absent ones and null are transformers' defaults.

    Raises:
        InputError: for a value or a key that the calculator cannot count.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not can_read(kind):
        rule = f"model_type must be one of: {', '.join(filter(can_read, TYPES))}"
        text = config.get("text_config")
        if isinstance(text, Mapping) and can_read(text.get("model_type")):
            rule = "only its text model can be counted: give the object at text_config instead"
        raise InputError("model_type", kind, rule)
    values = Configuration(config)
    if (found := values.value("quantization_config")) is not None:
        rule = (
            "quantized weights cannot be trained: remove this key to count the weights in the "
            "plan's precision; QLoRA is a LoRA rank with a base in 4 bits (--quantization)"
        )
        raise InputError("quantization_config", found, rule)
    values.only("output_attentions", False)
    values.only("output_hidden_states", False)
    values.only("chunk_size_feed_forward", 0)
    architecture = TYPES[kind].read(values, name)
    values.check_all_understood()
    return _described(architecture, title or name, _class_note(values, TYPES[kind].counted))


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
