"""Keys of torchtune's YAML.

Source: torchtune (recipes/, training/, models/, modules/loss/)
"""

import re
from typing import Final

from calculator.doors.readers import load
from calculator.doors.table import Facts, Named, is_off

_BUILDER: Final = re.compile(r"torchtune\.models\.\w+\.(q?lora_)?(\w+)")
_MODELS: Final = {
    "llama2": "meta-llama/Llama-2-{}-hf",
    "code_llama2": "codellama/CodeLlama-{}-hf",
    "llama3": "meta-llama/Meta-Llama-3-{}",
    "llama3_1": "meta-llama/Llama-3.1-{}",
    "llama3_2": "meta-llama/Llama-3.2-{}",
    "llama3_3": "meta-llama/Llama-3.3-{}-Instruct",
    "qwen2": "Qwen/Qwen2-{}",
    "qwen2_5": "Qwen/Qwen2.5-{}",
    "qwen3": "Qwen/Qwen3-{}",
    "gemma": "google/gemma-{}",
    "gemma2": "google/gemma-2-{}",
    "mistral": "mistralai/Mistral-{}-v0.1",
}
_OTHERS: Final = {
    "phi3_mini": "microsoft/Phi-3-mini-4k-instruct",
    "phi4_14b": "microsoft/phi-4",
}
_ATTENTION: Final = {"output_proj": "o_proj"}
_MORE: Final = Named("what this method holds beside the model is not counted", "more")


def _model(value: object) -> Facts | Named:
    """The model that a builder makes, and what its name says of adapters."""
    built = _BUILDER.fullmatch(str(value))
    if built is None:
        return Named("is a model of its own", "either")
    kind, name = built.groups()
    facts: dict[str, object] = {"model": _named(name)} if _named(name) else {}
    if kind:
        facts |= {"adapter": kind.rstrip("_")}
    if kind == "qlora_":
        facts |= {"four_bits": True, "four_bits_double": True}
    if not _named(name):
        return Named("this model is not counted: give --model", "either", facts)
    return facts


def _named(name: str) -> str:
    family, _, size = name.removesuffix("_base").removesuffix("_instruct").rpartition("_")
    begun, _, whole = family.rpartition("_")
    if family not in _MODELS and begun in _MODELS:  # 0_6b is 0.6 billion
        family, size = begun, f"{whole}.{size}"
    if name in _OTHERS:
        return _OTHERS[name]
    return _MODELS[family].format(size.upper()) if family in _MODELS else ""


def _optimizer(value: object) -> Facts | Named:
    name = str(value).rpartition(".")[2].lower()
    facts: dict[str, object] = {"optimizer": "adam"}
    if name in ("adamw", "adam"):
        return facts
    if "adam" in name:
        facts |= {"paged_optimizer": True} if "paged" in name else {}
        facts |= {"optimizer_bits": 8} if "8bit" in name else {}
        return facts
    return {"optimizer": "sgd"} if name == "sgd" else Named("this optimizer is not counted")


def _loss(value: object) -> Facts | Named:
    name = str(value).rpartition(".")[2]
    if "CrossEntropy" in name and ("Linear" in name or "Chunked" in name):
        words = "its chunks are counted as those of PyTorch's loss in chunks"
        return Named(words, "", {"chunked_loss": "torch"})
    if "CEWithChunkedOutput" in name:
        return Named("is counted as PyTorch's loss in chunks", "", {"chunked_loss": "torch"})
    return (
        Named("a pair is counted as two sequences", "more", {"pairs": True})
        if ("DPO" in name)
        else _MORE
    )


def _targets(value: object) -> Facts:
    names = value if isinstance(value, list) else [value]
    return {"attention_targets": ",".join(_ATTENTION.get(str(n), str(n)) for n in names)}


def _length(value: object) -> Facts:
    return {} if is_off(value) else {"sequence_length": value}


def _finish(facts: dict[str, object]) -> None:
    """Adapters beside the feed-forward layers stand in a key of their own."""
    names = str(facts.pop("attention_targets", "q_proj,v_proj"))
    if facts.pop("mlp_targets", False):
        names += ",gate_proj,up_proj,down_proj"
    if facts.get("adapter"):
        facts["lora_targets"] = names
    if facts.get("tensor_parallel") not in (None, 1):
        facts["data_parallel"] = "fsdp"
    if facts.get("checkpointing") != "full":
        facts.pop("activation_offload", None)


_READERS: Final = {
    "model": _model,
    "length": _length,
    "optimizer": _optimizer,
    "loss": _loss,
    "targets": _targets,
}
TABLE: Final = load("torchtune", _READERS, _finish)
