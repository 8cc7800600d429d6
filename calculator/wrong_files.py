"""Files that people give in place of a config.json, each by a key that it alone has."""

from collections.abc import Mapping
from typing import Final

from calculator.errors import one_line

_BASE: Final = "give the config.json of its base model"
_WEIGHTS: Final = "give the config.json beside it"
_CHECK: Final = "check it as a training file, or choose the same in the plan"
# key, the file that has it, and the way out
_FILES: Final = (
    ("peft_type", "an adapter_config.json", _BASE),
    ("weight_map", "an index of weights", _WEIGHTS),
    ("_diffusers_version", "a file of diffusers", "only transformers are counted"),
    ("image_processor_type", "a preprocessor_config.json", _WEIGHTS),
    ("added_tokens_decoder", "a tokenizer_config.json", _WEIGHTS),
    ("merges", "a tokenizer.json", _WEIGHTS),
    ("log_history", "a trainer_state.json", _WEIGHTS),
    ("zero_optimization", "a configuration of DeepSpeed", _CHECK),
    ("per_device_train_batch_size", "a list of training arguments", _CHECK),
    ("transformers_version", "a generation_config.json", _WEIGHTS),
)


def describe_file(values: Mapping[str, object]) -> str:
    """The file that an object without a model_type is, and the way out; empty if unknown.

    >>> describe_file({"dim": 4096, "n_layers": 32, "n_heads": 32})
    "is a params.json of Meta's format: give the config.json of the Hugging Face version"
    """
    if {"dim", "n_layers", "n_heads"} <= values.keys():
        return "is a params.json of Meta's format: give the config.json of the Hugging Face version"
    for key, title, way in _FILES:
        if key in values:
            base = values.get("base_model_name_or_path")
            return f"is {title}: {way}{f', {one_line(base)}' if base else ''}"
    return ""


def describe_text(text: str) -> str:
    """The file that a text without JSON is, and the way out; empty if unknown.

    >>> describe_text("version https://git-lfs.github.com/spec/v1")
    'is a pointer of Git LFS: give the file that it stands for'
    """
    begun = text.lstrip("\ufeff \t\r\n")[:200].lower()
    if begun.startswith("<"):
        return "is a web page: give the file itself, whose address has /resolve/ in place of /blob/"
    if begun.startswith("version https://git-lfs"):
        return "is a pointer of Git LFS: give the file that it stands for"
    return "is empty" if not begun else ""
