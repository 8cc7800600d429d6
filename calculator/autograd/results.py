"""Results that a checkpointed layer keeps although it is computed again.

Counted is PyTorch's `create_selective_checkpoint_contexts`: results of the chosen operations are
kept when they are made; in the backward pass each takes the place of its operation. Kept are those
of attention's fused kernels and of every second matrix product, beginning with the first. The
recomputation may end before it asks for the last of them; these stay as long as the layer's inputs.

Source: selective_contexts, torch (utils/checkpoint.py, _CachingTorchDispatchMode,
_CachedTorchDispatchMode)
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from calculator.autograd.graph import Made, Recorder, Tensor
from calculator.autograd.ledger import Storage
from calculator.autograd.mode import Costly

# of so many matrix products in turn the first is kept
IN_TURN: Final = 2


class Results:
    """Results that a layer keeps of its own operations, in their order."""

    def __init__(self) -> None:
        self.products = 0
        self.kept: deque[Sequence[Storage]] = deque()

    def __del__(self) -> None:
        for storages in self.kept:
            for storage in storages:
                storage.unsave()

    def chosen(self, kind: Costly) -> bool:
        """True if the results of the next operation, of this kind, are kept."""
        if kind is Costly.ATTENTION:
            return True
        self.products += 1
        return self.products % IN_TURN == 1

    def keep(self, made: Sequence[Tensor]) -> None:
        """The results of a chosen operation of the forward pass."""
        storages = [tensor.storage for tensor in made]
        for storage in storages:
            storage.save()
        self.kept.append(storages)

    def begin_again(self) -> None:
        """The layer is computed again, from its first operation on."""
        self.products = 0

    def handed(self, tape: Recorder, shapes: Sequence[Made]) -> list[Tensor]:
        """The results of the next chosen operation, held from now on by those that need them."""
        storages = self.kept.popleft()
        pairs = zip(storages, shapes, strict=True)
        made = [Tensor(tape, storage, each.shape, each.dtype) for storage, each in pairs]
        for storage in storages:
            storage.unsave()
        return made
