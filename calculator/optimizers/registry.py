"""The optimizers: a line each, whose first word names its module in this folder."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Self

from calculator.choice import Choice


class Optimizer(Choice):
    """Optimizer whose states and update are counted; AdamW counts as Adam."""

    label: str

    def __new__(cls, name: str, label: str = "") -> Self:
        """The optimizer of that name; the label is that of lists."""
        made = str.__new__(cls, name)
        made._value_, made.label = name, label
        return made

    ADAM = "adam", "Adam, AdamW"
    LAMB = "lamb", "LAMB"
    SGD = "sgd", "SGD"
    MOMENTUM = "momentum", "SGD with momentum"
    ADAFACTOR = "adafactor", "Adafactor"
    LION = "lion", "Lion"
    MUON = "muon", "Muon, AdamW for the rest"
    APOLLO = "apollo", "APOLLO, AdamW for the rest"


@cache
def rule_named(name: str) -> Any:
    """The `RULE` of an optimizer's module, imported on first use."""
    return import_module(f"calculator.optimizers.{name}").RULE


@cache
def names_elsewhere() -> Mapping[str, Mapping[str, object]]:
    """The options that an optimizer's name in another library stands for, by that name."""
    return {
        name: {"optimizer": str(one), **options}
        for one in Optimizer
        for name, options in rule_named(one).names.items()
    }
