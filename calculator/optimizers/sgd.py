"""SGD without momentum."""

from typing import Final

from calculator.optimizers.rule import Rule
from calculator.plan import Update

RULE: Final = Rule(
    torch="SGD",
    keeps=False,
    trainer={Update.FOREACH: "sgd"},
    note="Plain SGD keeps no states.",
)
