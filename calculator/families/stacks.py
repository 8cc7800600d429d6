"""A stack of layers, each run as it is or under checkpointing."""

from collections.abc import Callable, Sequence

from calculator.families.structure import Structure
from calculator.tape import Tape, Tensor
from calculator.techniques import Checkpointing


def run_stack(
    t: Tape, s: Structure, blocks: Sequence[Callable[[Tensor], Tensor]], x: Tensor
) -> Tensor:
    """All layers one after the other.

    Source: checkpointing
    """
    for position, block in enumerate(blocks):
        with t.in_layer("layers", position):
            if s.checkpointing is Checkpointing.FULL:
                x = t.checkpoint(block, x)
            else:
                x = block(x)
    t.ledger.mark("layers", len(blocks), backward=False)
    return x
