"""Tensors without numbers and the graph that autograd would build of them.

Source: torch (autograd/function.h, accumulate_grad.h, saved_variable.cpp).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from calculator.ledger import Part, Storage


class Recomputed(Protocol):
    """A part of the model whose kept tensors are thrown away and computed again."""

    def pack(self) -> int:
        """Throw a tensor away, but remember its place."""

    def unpack(self) -> None:
        """Make sure that all places are filled again."""

    def free(self, slot: int) -> None:
        """The tensor of that place is not needed any more."""


class Allocator(Protocol):
    """Where new bytes come from: a `calculator.tape.Tape`."""

    def empty(self, elements: str, item: int, is_view: bool = False) -> "Tensor":
        """New bytes."""

    def alias(self, tensor: "Tensor", elements: str | None = None) -> "Tensor":
        """The same bytes and history under another name or shape."""


class Tensor:
    """A view of a storage: `elements` as a symbolic product, `item` bytes each, and its history."""

    __slots__ = ("elements", "index", "is_view", "item", "node", "storage")

    def __init__(
        self,
        storage: Storage,
        elements: str,
        item: int,
        node: "Node | None" = None,
        index: int = 0,
        is_view: bool = False,
    ) -> None:
        storage.holders += 1
        self.is_view = is_view
        self.storage = storage
        self.elements = elements
        self.item = item
        self.node = node
        self.index = index

    def __del__(self) -> None:
        self.storage.release()


# torch gives its gradient accumulators the highest priority: they run as soon as they can
ACCUMULATE: Final = 1 << 60


class Saved:
    """A storage kept by a node until the node's backward is done, or its place in a `Frame`."""

    __slots__ = ("frame", "slot", "storage")

    def __init__(self, storage: Storage | None, frame: Recomputed | None = None) -> None:
        self.storage = storage
        self.frame = frame
        self.slot = frame.pack() if frame is not None else -1
        if storage is not None:
            storage.save()

    def unpack(self) -> None:
        """Make sure that the bytes are there, computing them again if they were thrown away."""
        if self.frame is not None:
            self.frame.unpack()

    def free(self) -> None:
        """The node is done with it."""
        if self.storage is not None:
            self.storage.unsave()
        elif self.frame is not None:
            self.frame.free(self.slot)
        self.storage = self.frame = None


Shape = tuple[str, int]
Rule = tuple[str, int, bool] | None
Gradients = list[Tensor | None]


class Node:
    """One step of the backward pass: from its outputs' gradients to its inputs'.

    `rules` says for each input what its gradient is: new bytes of a shape (and whether PyTorch
    makes it a view of another tensor), or None for the output's gradient passed on. `scratch`
    lives only while the node runs. With `product`, a shape, gradients are first made in that
    shape and then fitted to their rules, as the engine does for broadcast and mixed types.
    """

    __slots__ = (
        "edges",
        "layer",
        "outputs",
        "product",
        "rules",
        "saved",
        "scratch",
        "sequence",
        "special",
    )

    def __init__(
        self,
        sequence: int,
        layer: tuple[str, int] | None,
        edges: list["tuple[Node, int] | None"],
        rules: Sequence[Rule],
        scratch: Sequence[Shape] = (),
        special: Callable[[Gradients], Gradients] | None = None,
        product: Shape | None = None,
    ) -> None:
        self.product = product
        self.sequence = sequence
        self.layer = layer
        self.edges = edges
        self.rules = rules
        self.scratch = scratch
        self.special = special
        self.saved: list[Saved] = []
        self.outputs = 1

    def run(self, tape: Allocator, gradients: Gradients) -> Gradients:
        """The inputs' gradients."""
        if self.special is not None:
            return self.special(gradients)
        scratch = [tape.empty(*shape) for shape in self.scratch]
        results: Gradients = []
        for edge, rule in zip(self.edges, self.rules, strict=True):
            if edge is None:
                results.append(None)
            elif rule is not None:
                results.append(tape.empty(*(self.product or rule)))
            else:
                passed = gradients[0]
                assert passed is not None
                results.append(tape.alias(passed))
        del scratch
        return results

    def fit(self, tape: Allocator, results: Gradients) -> None:
        """Bring gradients made in the product's shape into their inputs' shapes and types."""
        for place, rule in enumerate(self.rules if self.product else ()):
            if results[place] is not None and rule is not None and rule[:2] != self.product:
                results[place] = tape.empty(*rule)


class Leaf(Tensor):
    """A tensor that gets a gradient of its own."""

    __slots__ = ("gradient", "has_gradient")

    def __init__(
        self, storage: Storage, elements: str, item: int, has_gradient: bool, order: int
    ) -> None:
        super().__init__(storage, elements, item, Node(ACCUMULATE + order, None, [], ()))
        self.gradient: Tensor | None = None
        self.has_gradient = has_gradient

    def accumulate(self, gradient: Tensor) -> None:
        """Take the first gradient as it is; later ones are added in place."""
        if self.has_gradient:
            return
        self.has_gradient = True
        self.gradient = gradient


class Weight(Leaf):
    """A parameter; its own bytes are static, its gradient is born in the backward pass."""

    __slots__ = ()

    def accumulate(self, gradient: Tensor) -> None:
        """Take the first gradient as it is; later ones are added in place."""
        if not self.has_gradient:
            gradient.storage.become(Part.GRADIENTS)
        super().accumulate(gradient)
