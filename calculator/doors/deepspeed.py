"""Keys of a configuration of DeepSpeed.

Source: DeepSpeed (docs/_pages/config-json.md, runtime/config.py, runtime/zero/config.py)
"""

from typing import Final

from calculator.doors.readers import load
from calculator.doors.table import Facts, Named, Reader, in_words, is_off
from calculator.optimizers.registry import names_elsewhere

_ADAM: Final = {"optimizer": "adam", "update": "fused"}


def _number(name: str) -> Reader:
    def read(value: object) -> Facts:
        return {} if in_words(value) == "auto" else {name: value}

    return read


def _in_ram(name: str) -> Reader:
    def read(value: object) -> Facts | Named:
        if in_words(value) == "nvme":
            return Named("counted as RAM, whose staging buffers it shares", "", {name: True})
        return {} if is_off(value) else {name: True}

    return read


def _optimizer(value: object) -> Facts | Named:
    name = in_words(value)
    if name in ("adam", "adamw", "fusedadam"):
        return _ADAM
    if name in ("lamb", "fusedlamb", "lion", "sgd", "adagrad", "muon"):
        return {"optimizer": name} if name != "fusedlamb" else {"optimizer": "lamb"}
    if name in ("onebitadam", "zerooneadam", "onebitlamb"):
        facts = {"optimizer": "lamb"} if "lamb" in name else _ADAM
        return Named("its compressed gradients and their errors are not counted", "more", facts)
    return names_elsewhere().get(name, Named("this optimizer is not counted; AdamW is"))


_READERS: Final = {
    "optimizer": _optimizer,
    **{name: _number(name) for name in ("batch_size", "update_batch", "accumulation")},
    **{name: _in_ram(name) for name in ("offload_states", "offload_weights")},
}
TABLE: Final = load("deepspeed", _READERS)
