"""A library's table as its file in `tables/` has it, and the readers of values that several share.

In a file a key means the fact whose value it has (a text), or facts by its value (a table), or one
of these: ``on`` and ``off``, the facts of a switch; ``read``, the name of a reader; ``words``,
``way`` and ``facts``, those of `Named`, or ``facts`` alone unless its value leaves them out.
"""

import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

from calculator.data import text_beside
from calculator.doors.table import Facts, Meaning, Named, Reader, Table, in_words, is_off, joined
from calculator.optimizers.registry import Optimizer, names_elsewhere


def load(
    name: str,
    readers: Mapping[str, Reader] | None = None,
    finish: Callable[[dict[str, object]], None] | None = None,
) -> Table:
    """The table of a file, whose readers are the common ones or its library's own."""
    known = {**_COMMON, **(readers or {})}
    values = read_table(name)
    harmless = values["harmless"]
    if values.get("has_arguments"):
        harmless += read_table("trainer")["arguments"]
    return Table(
        title=values["title"],
        marks=tuple(values["marks"]),
        keys={key: _meaning(value, known) for key, value in values["keys"].items()},
        harmless=harmless,
        named=tuple((Named(words, way), keys) for words, way, keys in values["named"]),
        defaults=values.get("defaults", {}),
        edits=values["edits"],
        is_run=values.get("is_run", True),
        finish=finish,
    )


def read_table(name: str) -> Any:
    """The values of a library's file."""
    return tomllib.loads(text_beside(__spec__, f"tables/{name}.toml"))


def _meaning(value: Any, readers: Mapping[str, Reader]) -> Meaning:
    """A key's meaning as its file has it."""
    if isinstance(value, str):
        return value
    if "read" in value:
        return readers[value["read"]]
    if "on" in value:
        return either(value["on"], value["off"]) if "off" in value else flag(**value["on"])
    if "words" in value or "facts" in value:
        return _named(value)
    return {key: _named(it) if "words" in it else it for key, it in value.items()}


def _named(value: Any) -> Named:
    return Named(**{"way": "", **value})


def flag(**facts: object) -> "Mapping[str, Facts | Named]":
    """A switch: these facts where it is on."""
    return {"true": facts, "false": {}, "none": {}, "auto": {}}


def either(on: Facts, off: Facts) -> "Mapping[str, Facts | Named]":
    """A switch with facts for both sides."""
    return {"true": on, "false": off, "none": off}


_EIGHT: Final = {"optimizer": "adam", "optimizer_bits": 8}
_ONE_STATE: Final = Named("is counted as SGD with momentum", "", {"optimizer": "momentum"})
_UNCOUNTED: Final = {
    "adamw_torch_8bit": Named("is counted as bitsandbytes' 8 bits", "", _EIGHT),
    "adamw_torch_4bit": Named("is counted as bitsandbytes' 8 bits", "less", _EIGHT),
    "ao_adamw_fp8": Named("is counted as bitsandbytes' 8 bits", "", _EIGHT),
    "rmsprop": _ONE_STATE,
    "adagrad": _ONE_STATE,
    "lion_pytorch": Named("is counted as Lion in 32 bits", "", {"optimizer": "lion"}),
}


def optimizer(value: object) -> Facts | Named:
    """The facts of an optimizer's name, as transformers has it."""
    name = in_words(value)
    if name in names_elsewhere():
        return {"update": "foreach", **names_elsewhere()[name]}
    if name in [str(item) for item in Optimizer]:
        return {"update": "foreach", "optimizer": name}
    return _UNCOUNTED.get(name, Named("this optimizer is not counted; AdamW is"))


def targets(value: object) -> Facts | Named:
    """Layers with adapters; a pattern stands for all of them."""
    name = str(joined(value))
    if name in ("all", "all-linear"):
        return {"lora_targets": "all-linear"}
    if any(sign in name for sign in "\\(*^[|"):
        words = "is a pattern: counted is every linear layer"
        return Named(words, "", {"lora_targets": "all-linear"})
    return {"lora_targets": name}


def attention(value: object) -> Facts | Named:
    """The kernel of attention by transformers' name, or another library's."""
    name = in_words(value)
    if name in ("auto", "none", "false", "disabled"):
        return {"attention": "eager"} if name == "disabled" else {}
    if name in ("sdpa", "eager"):
        return {"attention": name}
    if "flash" in name or name == "fa2":
        exact = name in ("flash_attention_2", "flash_attention", "fa2")
        words = "" if exact else "is counted as FlashAttention 2"
        return Named(words, "", {"attention": "flash"})
    return Named("is counted as sdpa", "", {"attention": "sdpa"})


SHARDS: Final = {"data_parallel": "fsdp"}


def shards(value: object) -> Facts:
    """FSDP by a list of words, as transformers and axolotl have it."""
    words = in_words(value)
    if is_off(value):
        return {}
    return {"data_parallel": "zero2" if "grad_op" in words else "fsdp"}


def strategy(value: object) -> Facts | Named:
    """FSDP by its strategy, or by whether it gathers again for the backward pass."""
    match in_words(value):
        case "full_shard" | "1" | "true":
            return SHARDS
        case "shard_grad_op" | "2" | "false":
            return {"data_parallel": "zero2"}
        case "no_shard" | "3":
            return {"data_parallel": "ddp"}
        case _:
            return Named("shards within a machine: counted as over all GPUs", "more", SHARDS)


_COMMON: Final[Mapping[str, Reader]] = {
    "optimizer": optimizer,
    "targets": targets,
    "attention": attention,
    "shards": shards,
    "strategy": strategy,
}
