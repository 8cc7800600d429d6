"""Lion: one momentum."""

from typing import Final

from calculator.optimizers.rule import Rule

_8BIT: Final = {"optimizer_bits": 8}
_PAGED: Final = {"paged_optimizer": True}
RULE: Final = Rule(
    bitsandbytes="Lion",
    states=1,
    names={
        "lion_32bit": {},
        "lion_8bit": _8BIT,
        "paged_lion_32bit": _PAGED,
        "paged_lion_8bit": {**_8BIT, **_PAGED},
    },
)
