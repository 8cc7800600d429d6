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
    text = text_model(config)
    kind = text.get("model_type")
    if not isinstance(kind, str) or not can_read(kind):
        raise InputError("model_type", kind, _unknown(config))
    values = Configuration(text)
    found = values.value("quantization_config")
    found = config.get("quantization_config") if found is None else found
    if found is not None:
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
    counted = TYPES[kind].counted
    note = _class_note(values, counted) if text is config else _inner_note(config, counted)
    return _described(architecture, title or name, note)


def text_model(config: Mapping[str, object]) -> Mapping[str, object]:
    """The values of the model that is counted: of a larger model's, those of its text model.

    The class of a text model that stands in larger models on the Hub reads the same part of such a
    config.json. Of any other the config is returned as it is.

    Source: transformers (configuration_utils.py, from_pretrained)
    """
    kind, text = config.get("model_type"), config.get("text_config")
    if not isinstance(kind, str) or can_read(kind) or not isinstance(text, Mapping):
        return config
    inner = str(text.get("model_type"))
    return text if can_read(inner) and TYPES[inner].is_inner else config


def _unknown(config: Mapping[str, object]) -> str:
    """The rule that a config breaks whose type is not known."""
    text = config.get("text_config")
    if isinstance(text, Mapping) and can_read(text.get("model_type")):
        return (
            "the model around its text model cannot be counted: to count the text model alone, "
            "give the object at text_config instead"
        )
    return f"model_type must be one of: {', '.join(filter(can_read, TYPES))}"


def _inner_note(config: Mapping[str, object], counted: str) -> str:
    """A note on the part of a larger model that is counted."""
    return (
        f"The configuration is of {one_line(config.get('model_type'))}; counted is its text model "
        f"alone, {counted}, as that class reads the configuration."
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
