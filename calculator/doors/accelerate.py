"""A configuration of accelerate.

Source: accelerate (commands/config/config_args.py, utils/dataclasses.py)
"""

from typing import Final

from calculator.doors.readers import SHARDS, load
from calculator.doors.table import Facts, Named, in_words


def _kind(value: object) -> Facts | Named:
    match in_words(value):
        case "no":
            return {"processes": 1}
        case "fsdp":
            return SHARDS
        case "deepspeed" | "multi_gpu":
            return {}
        case _:
            return Named("GPUs of NVIDIA are counted", "")


TABLE: Final = load("accelerate", {"kind": _kind})
