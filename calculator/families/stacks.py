"""A stack of layers, each run as it is or under checkpointing."""

from collections.abc import Callable, Sequence

from calculator.families.structure import Structure
from calculator.graph import Tensor
from calculator.tape import Tape
from calculator.techniques import Checkpointing


def run_stack(
    t: Tape, s: Structure, blocks: Sequence[Callable[[Tensor], Tensor]], x: Tensor
) -> Tensor:
    """All layers one after the other.

    Source: checkpointing
    """
    for position, block in enumerate(blocks):
        with t.in_layer("layers", position):
            x = t.checkpoint(block, x) if s.checkpointing is Checkpointing.FULL else block(x)
    t.ledger.mark("layers", len(blocks), backward=False)
    return x
