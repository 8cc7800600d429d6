"""A training step on tensors that have sizes but no numbers: what lives when.

PyTorch's autograd in small. Each operation allocates its output and keeps the tensors that its
backward formula needs; a tensor dies with the last Python variable that holds it and the last
graph node that needs it, just as PyTorch's do, so the families' programs read like the models'
own code. The ledger notes every birth and death with a symbolic size, and `calculator.timeline`
adds them up for numbers.

Source: torch (autograd/engine.cpp, input_buffer.cpp, torch/utils/checkpoint.py, autocast).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from calculator.engine import Engine
from calculator.graph import Gradients, Leaf, Node, Rule, Saved, Shape, Tensor, Weight
from calculator.ledger import Part, Storage

T = TypeVar("T")


class StopRecomputationError(Exception):
    """Every tensor that was thrown away is there again."""


class Frame:
    """A checkpointed part of the model: keeps its inputs, computes the rest again when asked."""

    def __init__(
        self, tape: "Tape", function: Callable[..., object], inputs: Sequence[Tensor]
    ) -> None:
        self.tape = tape
        self.function = function
        self.layer = tape.layer
        self.inputs = [tape.alias(tensor) for tensor in inputs]
        for tensor in self.inputs:
            tensor.storage.save()
        self.packed = 0
        self.kept: list[Storage | None] | None = None

    def __del__(self) -> None:
        for tensor in self.inputs:
            tensor.storage.unsave()

    def pack(self) -> int:
        """Throw a tensor away, but remember its place."""
        self.packed += 1
        return self.packed - 1

    def keep(self, storage: Storage) -> None:
        """The tensor of the next place, computed again; after the last one the forward stops."""
        assert self.kept is not None
        storage.save()
        self.kept.append(storage)
        if len(self.kept) == self.packed:
            raise StopRecomputationError

    def unpack(self) -> None:
        """Run the forward again, the first time that one of its tensors is wanted."""
        if self.kept is None:
            self.kept = []
            self.tape.recompute(self)

    def free(self, slot: int) -> None:
        """The node that wanted this tensor is done."""
        if self.kept is not None and (storage := self.kept[slot]) is not None:
            storage.unsave()
            self.kept[slot] = None


class Tape(Engine):
    """Records a step: allocates, keeps, casts, and runs the backward pass.

    `weight_item` and `autocast_item` are bytes of a number in weights and, under autocast, in
    matrix products; `gradients_exist` is set in every micro-step but the first.
    """

    def __init__(self, weight_item: int, autocast_item: int, gradients_exist: bool) -> None:
        super().__init__()
        self.static = Storage(self.ledger, 0, Part.WEIGHTS)
        self.weight_item = weight_item
        self.autocast_item = autocast_item
        self.gradients_exist = gradients_exist
        self.recording = True
        self.inputs: tuple[Tensor, ...] = ()
        self._sequence = 0
        self._casts: dict[int, Tensor] = {}
        self._frame: Frame | None = None
        self._recomputing: Frame | None = None
        self.cache_casts = True

    def weight(self, elements: str) -> Weight:
        """A parameter of that many elements."""
        order = len(self._leaves)
        weight = Weight(self.static, elements, self.weight_item, self.gradients_exist, order)
        self._leaves[id(weight.node)] = weight
        return weight

    def leaf(self, tensor: Tensor) -> Leaf:
        """The same bytes as a tensor that gets a gradient without being a weight."""
        self._sequence += 1
        order = self._sequence + (1 << 40)
        leaf = Leaf(tensor.storage, tensor.elements, tensor.item, False, order)
        if self._recomputing is None:  # gradients flow to the first one, not to its copy
            self._leaves[id(leaf.node)] = leaf
        return leaf

    @property
    def autocasting(self) -> bool:
        """Whether weights are 32 bits and matrix products 16."""
        return self.autocast_item < self.weight_item

    def forget(self, leaf: Leaf) -> None:
        """The leaf's gradient has been asked for; it is not needed any more."""
        self._leaves.pop(id(leaf.node), None)

    def input(self, elements: str) -> Tensor:
        """Token ids of 8 bytes, which the training loop holds through the step."""
        size_id = self.ledger.size_id(elements, 8)
        return Tensor(Storage(self.ledger, size_id, Part.ACTIVATIONS, fixed=True), elements, 8)

    def record(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        saved: Sequence[Tensor] = (),
        rules: Sequence[Rule] | None = None,
        scratch: Sequence[Shape] = (),
        special: Callable[[Gradients], Gradients] | None = None,
        product: Shape | None = None,
    ) -> None:
        """One differentiable operation; by default each input's gradient is new bytes."""
        if not self.recording:
            return
        edges = [None if x.node is None else (x.node, x.index) for x in inputs]
        if not any(edges):
            return
        if rules is None:
            rules = [(x.elements, x.item, False) for x in inputs]
        self._sequence += 1
        node = Node(self._sequence, self.layer, edges, rules, scratch, special, product)
        node.outputs = len(outputs)
        for index, output in enumerate(outputs):
            output.node = node
            output.index = index
        for tensor in saved:
            self._save(node, tensor.storage)

    def _save(self, node: Node, storage: Storage) -> None:
        if not storage.size_id:
            return
        if self._recomputing is not None:
            self._recomputing.keep(storage)
        elif self._frame is not None:
            node.saved.append(Saved(None, self._frame))
        else:
            node.saved.append(Saved(storage))

    def cast(self, tensor: Tensor, item: int) -> Tensor:
        """The tensor in another number format; itself where it already has it."""
        if tensor.item == item:
            return tensor
        output = self.like(tensor, item)
        self.record([tensor], [output])
        return output

    def lower(self, tensor: Tensor) -> Tensor:
        """What autocast hands to a matrix product: 16 bits, weights cast once a forward pass."""
        if not self.autocasting or tensor.item <= self.autocast_item:
            return tensor
        if not isinstance(tensor, Weight):
            return self.cast(tensor, self.autocast_item)
        if not self.cache_casts:
            return self.cast(tensor, self.autocast_item)
        key = id(tensor)
        if key not in self._casts:
            self._casts[key] = self.cast(tensor, self.autocast_item)
        return self._casts[key]

    def end_autocast(self) -> None:
        """Leaving autocast forgets its 16-bit copies; the graph may still keep them."""
        self._casts.clear()

    @contextmanager
    def in_layer(self, stack: str, position: int) -> Iterator[None]:
        """Operations inside belong to that layer."""
        self.ledger.mark(stack, position, backward=False)
        before, self.layer = self.layer, (stack, position)
        yield
        self.layer = before

    def checkpoint(self, function: Callable[..., T], *inputs: Tensor) -> T:
        """Run `function` keeping only its inputs, as torch.utils.checkpoint without reentry."""
        if self._recomputing is not None or self._frame is not None:
            return function(*inputs)
        self._frame = Frame(self, function, inputs)
        output = function(*inputs)
        self._frame = None
        return output

    def recompute(self, frame: Frame) -> None:
        """Run a checkpointed forward again until all that was thrown away is back."""
        casts, self._casts = self._casts, {}
        outer, self._recomputing = self._recomputing, frame
        layer, self.layer = self.layer, frame.layer
        recording, self.recording = self.recording, True
        with suppress(StopRecomputationError):
            frame.function(*frame.inputs)
        self._casts, self._recomputing = casts, outer
        self.layer, self.recording = layer, recording
