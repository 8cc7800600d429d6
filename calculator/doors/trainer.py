"""Arguments of transformers' Trainer, of TRL, and of peft and bitsandbytes beside them.

Source: transformers (training_args.py), TRL (trainer/base_config.py, sft_config.py, dpo_config.py,
model_config.py), peft (tuners/lora/config.py)
"""

from dataclasses import replace
from typing import Final

from calculator.doors.names import BY_CARD
from calculator.doors.readers import either, load, read_table
from calculator.doors.table import Facts, Named, in_words

_PAIRS: Final = Named(
    "a pair is counted as two sequences, and no reference model", "more", {"pairs": True}
)
_KERNELS: Final = Named("Unsloth's kernels keep fewer results than what is counted", "less")
_GENERATES: Final = Named("what generates texts beside the step is not counted", "more")


def _class(value: object) -> Facts | Named:
    """The facts of a program's classes."""
    names = in_words(value)
    facts: dict[str, object] = {"adapter": "lora"} if "loraconfig" in names else {}
    if "rankingloss" in names:
        facts["pairs"] = True
    if "unsloth" in names:
        return replace(_KERNELS, facts=facts)
    if any(name in names for name in ("dpoconfig", "dpotrainer", "rewardconfig", "orpoconfig")):
        return replace(_PAIRS, facts={**facts, "pairs": True})
    return replace(_GENERATES, facts=facts) if "grpo" in names else facts


def _format(value: object) -> Facts:
    return {"weights": "card" if value == BY_CARD else in_words(value)}


def _autocast(value: object) -> Facts | Named:
    if value == BY_CARD:
        return {"autocast": "card"}
    found = either({"autocast": "bf16"}, {"autocast": ""}).get(in_words(value))
    return Named("this value is not known here") if found is None else found


def _unsloth(value: object) -> Facts:
    return {"checkpointing": "none" if in_words(value) in ("false", "none") else "full"}


TABLE: Final = load(
    "trainer", {"class": _class, "autocast": _autocast, "format": _format, "unsloth": _unsloth}
)
_TRL: Final = read_table("trainer")["trl"]
TRL: Final = replace(
    TABLE,
    title=_TRL["title"],
    marks=tuple(_TRL["marks"]),
    defaults={**TABLE.defaults, **_TRL["defaults"]},
)
