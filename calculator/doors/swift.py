"""Options of ms-swift, whose adapters are the default.

Source: ms-swift (docs/source_en/Instruction/Command-line-parameters.md)
"""

from dataclasses import replace
from typing import Final

from calculator.doors.llamafactory import bits
from calculator.doors.readers import load
from calculator.doors.table import Facts, in_words


def _zero(value: object) -> Facts:
    """A stage by its name, or a file of DeepSpeed."""
    stage, _, offloads = in_words(value).removeprefix("zero").partition("_")
    if stage not in ("0", "1", "2", "3"):
        return {"part": value}
    in_ram = {"offload_states": True, **({"offload_weights": True} if stage == "3" else {})}
    return {"zero": int(stage), **(in_ram if offloads else {})}


def _finish(facts: dict[str, object]) -> None:
    """bitsandbytes packs the scales too, unless told otherwise."""
    if facts.get("four_bits"):
        facts.setdefault("four_bits_double", True)


_TABLE: Final = load("swift", {"bits": bits, "zero": _zero}, _finish)
# since version 4 by its second name
TABLE: Final = replace(_TABLE, keys={**_TABLE.keys, "train_type": _TABLE.keys["tuner_type"]})
