"""Keys of LLaMA-Factory's YAML, of both its versions.

Source: LLaMA-Factory (hparams/, model/adapter.py, v1/config/)
"""

from typing import Final

from calculator.doors.readers import load
from calculator.doors.table import Facts, Named, in_words


def bits(value: object) -> Facts | Named:
    """Weights of 4 bits, or of more, which are counted as 16."""
    if in_words(value) == "4":
        return {"four_bits": True}
    return Named("is counted as 16 bits", "less")


def _finish(facts: dict[str, object]) -> None:
    """Whole models are trained in 32 bits under autocast, unless purely in 16 or in shards."""
    pure = facts.pop("pure", False)
    whole = facts.pop("full", False)
    if autocast := facts.get("autocast"):
        facts["weights"] = "fp32" if whole and not pure else autocast
    if facts.get("four_bits") and "four_bits_double" not in facts:
        facts["four_bits_double"] = True


TABLE: Final = load("llamafactory", {"bits": bits}, _finish)
