"""Keys of torchtitan's TOML.

Source: torchtitan (config/job_config.py before its configurations became Python,
distributed/activation_checkpoint.py)
"""

from typing import Final

from calculator.doors.readers import load
from calculator.doors.table import Facts, in_words

_SHAPES: Final = {
    "llama3": ("meta-llama/Llama-3.1-", ("8B", "70B", "405B")),
    "qwen3": ("Qwen/Qwen3-", ("0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B")),
}
_NAMES: Final = {
    ("deepseek_v3", "16B"): "deepseek-ai/DeepSeek-V2-Lite",
    ("deepseek_v3", "671B"): "deepseek-ai/DeepSeek-V3",
}


def _shards(value: object) -> Facts:
    return {} if in_words(value) == "1" else {"data_parallel": "fsdp"}


def _finish(facts: dict[str, object]) -> None:
    """The model, which two keys name; selective checkpoints by operation or of every n-th layer."""
    name, flavor = str(facts.pop("name", "")), str(facts.pop("flavor", ""))
    begun, sizes = _SHAPES.get(name, ("", ()))
    known = begun + flavor if flavor in sizes else _NAMES.get((name, flavor))
    if known and "model" not in facts:
        facts["model"] = known
    option = str(facts.pop("selective", "2"))
    selective = facts.get("checkpointing") == "selective"
    if selective:
        facts["checkpointing"] = "operations" if option == "op" else "full"
    if "checkpointing" in facts:
        facts["checkpoint_every"] = int(option) if selective and option.isdecimal() else 1
    if facts.get("pipeline_parallel") not in (None, 1):
        facts.setdefault("pipeline_schedule", "1f1b")


TABLE: Final = load("torchtitan", {"shards": _shards}, _finish)
