"""A stack of layers that hand on the probabilities of their attention.

Source: transformers (models/bloom/modeling_bloom.py, models/codegen/modeling_codegen.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from calculator.autograd.graph import Tensor
from calculator.layers.attention import Attended
from calculator.layers.stack import B, Stack


@dataclass(eq=False)
class HoldingStack(Stack[B]):
    """All layers; each one's probabilities are held until the next one has its own."""

    def after(self, x: Tensor, *context: Any) -> Attended:
        """The residual stream, and the last layer's probabilities."""
        t = x.tape
        if t.mode.reversible:
            return self(x, *context), None
        held: list[Tensor | None] = []
        for position, block in enumerate(self.blocks):
            with t.in_layer(self.name, position):
                run = partial(_with_context, block, context)
                if self.is_checkpointed(t, position):
                    run = partial(t.checkpoint, run)
                whole = partial(_held, run, held)
                x = self.gathered(t, position, whole)(x)
        t.ledger.mark(self.name, len(self.blocks), backward=False)
        return x, held.pop()


def _with_context(block: Any, context: tuple[Any, ...], x: Tensor) -> Attended:
    found: Attended = block.run(x, *context)
    return found


def _held(run: Callable[[Tensor], Attended], held: list[Tensor | None], x: Tensor) -> Tensor:
    """The residual stream; the probabilities take the place of the last layer's."""
    x, probabilities = run(x)
    held[:] = [probabilities]
    return x
