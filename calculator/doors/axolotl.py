"""axolotl's YAML.

Source: axolotl (utils/schemas/, utils/config/__init__.py, loaders/model.py, integrations/)
"""

from typing import Final

from calculator.doors.readers import load
from calculator.doors.table import Facts, Named, in_words, is_off
from calculator.task import task_named

_CHUNKED: Final = {"chunked_loss": "torch"}
_LOSS: Final = Named("is counted as PyTorch's loss in chunks", "", _CHUNKED)
_REFERENCE: Final = Named("a pair is counted as two sequences", "more", {"pairs": True})
_BESIDE: Final = Named("what this method holds beside the model is not counted", "more")


_BF16: Final = {"weights": "bf16", "autocast": "bf16"}


def _bf16(value: object) -> Facts:
    if in_words(value) == "false":
        return {"weights": "fp32", "autocast": ""}
    return {} if is_off(value) else _BF16


# of these, other keys say what they do
_PLUGINS: Final = (
    "liger",
    "spectrum",
    "swanlab",
    "kernels",
    "expert_parallel",
    "diffusion",
    "lm_eval",
)


def _plugins(value: object) -> Facts | Named:
    names = in_words(value)
    if "cut_cross_entropy" in names:
        return _LOSS
    others = [name for name in names.split(",") if not any(known in name for known in _PLUGINS)]
    return Named("this plugin is not counted", "either") if others else {}


def _method(value: object) -> Named:
    return _REFERENCE if in_words(value) in ("dpo", "ipo", "orpo", "simpo") else _BESIDE


def _class(value: object) -> Facts:
    task = task_named([str(value)])
    return {"task": str(task)} if task else {}


def _finish(facts: dict[str, object]) -> None:
    """16-bit floats go before the default; offloading is of checkpointed layers alone."""
    if facts.get("checkpointing") != "full":
        facts.pop("activation_offload", None)
    if facts.pop("linear", None) and not facts.get("lora_targets"):
        facts["lora_targets"] = "all-linear"


_READERS: Final = {"bf16": _bf16, "plugins": _plugins, "class": _class, "method": _method}
TABLE: Final = load("axolotl", _READERS, _finish)
