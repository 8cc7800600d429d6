"""LAMB: Adam's moments, and one norm per tensor."""

from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.rule import Rule

RULE: Final = Rule(bitsandbytes="LAMB", states=2, beside=round_block(4))
