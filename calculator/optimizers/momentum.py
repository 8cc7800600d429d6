"""SGD with momentum."""

from typing import Final

from calculator.optimizers.rule import Rule

RULE: Final = Rule(torch="SGD", bitsandbytes="SGD", states=1, options=("momentum=0.9",))
