"""A training step on tensors that have sizes but no numbers: what lives when.

PyTorch's autograd in small. Each operation allocates its output and keeps the tensors that its
backward formula needs; a tensor dies with the last Python variable or graph node that holds it,
just as PyTorch's do, so the families' programs read like the models' own code. The ledger notes
every birth and death with a symbolic size, and `calculator.timeline` adds them up for numbers.

Source: torch (autograd/engine.cpp, accumulate_grad.h, input_buffer.cpp, checkpoint.py).
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum, StrEnum
from typing import Final, TypeVar


class Part(IntEnum):
    """What bytes are for."""

    WEIGHTS = 0
    GRADIENTS = 1
    OPTIMIZER = 2
    ACTIVATIONS = 3
    TEMPORARIES = 4


class Moment(StrEnum):
    """The four moments of a step."""

    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"


T = TypeVar("T")
Mark = tuple[str, int, bool]  # stack, position of the layer, in the backward pass


class Ledger:
    """Births (+id) and deaths (-id) of storages in order; an id stands for one (elements, bytes).

    Elements are products of symbols such as ``"3*N*d"``. `part_events` repeats each event with
    the part it belongs to and adds those in which living bytes change their part.
    """

    def __init__(self) -> None:
        self.sizes: dict[tuple[str, int], int] = {}
        self.events: list[int] = []
        self.births: list[int] = []
        self.part_events: list[tuple[int, int, int]] = []
        self.moments: list[tuple[int, Moment]] = []
        self.marks: list[tuple[int, Mark]] = []

    def size_id(self, elements: str, item: int) -> int:
        """The id, from 1 up, of a storage of that many elements of `item` bytes."""
        return self.sizes.setdefault((elements, item), len(self.sizes) + 1)

    def note(self, signed_id: int, part: Part, birth: int) -> None:
        """A birth or a death, of bytes born at event `birth`."""
        self.births.append(birth)
        self.events.append(signed_id)
        self.part_events.append((len(self.events), part, signed_id))

    def move(self, size_id: int, source: Part, target: Part) -> None:
        """Living bytes that from now on are there for something else."""
        now = len(self.events)
        self.part_events.append((now, source, -size_id))
        self.part_events.append((now, target, size_id))

    def begin(self, moment: Moment) -> None:
        """The next moment of the step starts here."""
        self.moments.append((len(self.events), moment))

    def mark(self, stack: str, position: int, backward: bool) -> None:
        """A layer of a stack starts here, in the forward or the backward pass."""
        self.marks.append((len(self.events), (stack, position, backward)))


class Storage:
    """Bytes on the GPU, counted by the tensors and graph nodes that hold them."""

    __slots__ = ("birth", "fixed", "holders", "ledger", "part", "savers", "size_id")

    def __init__(self, ledger: Ledger, size_id: int, part: Part, fixed: bool = False) -> None:
        self.fixed = fixed
        self.ledger = ledger
        self.size_id = size_id
        self.part = part
        self.holders = 0
        self.savers = 0
        self.birth = len(ledger.events)
        if size_id:
            ledger.note(size_id, part, self.birth)

    def release(self) -> None:
        """One holder less; the last one frees the bytes."""
        self.holders -= 1
        if not self.holders and self.size_id:
            self.ledger.note(-self.size_id, self.part, self.birth)

    def save(self) -> None:
        """A graph node keeps it for the backward pass."""
        self.holders += 1
        self.savers += 1
        if self.savers == 1:
            self._move(Part.TEMPORARIES, Part.ACTIVATIONS)

    def unsave(self) -> None:
        """A graph node is done with it."""
        self.savers -= 1
        if not self.savers:
            self._move(Part.ACTIVATIONS, Part.TEMPORARIES)
        self.release()

    def become(self, part: Part) -> None:
        """From now on these bytes are there for something else."""
        if self.size_id and self.part is not part:
            self.ledger.move(self.size_id, self.part, part)
        self.part = part

    def _move(self, source: Part, target: Part) -> None:
        if self.part is source and not self.fixed:
            self.become(target)


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

    def __init__(self, storage: Storage | None, frame: "Frame | None" = None) -> None:
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

    def run(self, tape: "Tape", gradients: Gradients) -> Gradients:
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

    def fit(self, tape: "Tape", results: Gradients) -> None:
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
        gradient.storage.become(Part.GRADIENTS)


class Weight(Leaf):
    """A parameter; its own bytes are static, its gradient is born in the backward pass."""

    __slots__ = ()


class StopRecomputationError(Exception):
    """Every tensor that was thrown away is there again."""


class Frame:
    """A checkpointed part of the model: keeps its inputs, computes the rest again when asked."""

    def __init__(self, tape: "Tape", function: Callable[..., object], inputs: Sequence[Tensor]) -> None:
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


class Tape:
    """Records a step: allocates, keeps, casts, and runs the backward pass.

    `weight_item` and `autocast_item` are bytes of a number in weights and, under autocast, in
    matrix products; `gradients_exist` is set in every micro-step but the first.
    """

    def __init__(self, weight_item: int, autocast_item: int, gradients_exist: bool) -> None:
        self.ledger = Ledger()
        self.static = Storage(self.ledger, 0, Part.WEIGHTS)
        self.weight_item = weight_item
        self.autocast_item = autocast_item
        self.gradients_exist = gradients_exist
        self.layer: tuple[str, int] | None = None
        self.recording = True
        self.inputs: tuple[Tensor, ...] = ()
        self._sequence = 0
        self._casts: dict[int, Tensor] = {}
        self._leaves: dict[int, Leaf] = {}
        self._frame: Frame | None = None
        self._recomputing: Frame | None = None
        self._captured: dict[int, Tensor] | None = None
        self._stops: set[Node] = set()
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

    def empty(self, elements: str, item: int, is_view: bool = False) -> Tensor:
        """New bytes."""
        storage = Storage(self.ledger, self.ledger.size_id(elements, item), Part.TEMPORARIES)
        return Tensor(storage, elements, item, is_view=is_view)

    def forget(self, leaf: Leaf) -> None:
        """The leaf's gradient has been asked for; it is not needed any more."""
        self._leaves.pop(id(leaf.node), None)

    def input(self, elements: str) -> Tensor:
        """Token ids of 8 bytes, which the training loop holds through the step."""
        size_id = self.ledger.size_id(elements, 8)
        return Tensor(Storage(self.ledger, size_id, Part.ACTIVATIONS, fixed=True), elements, 8)

    def like(self, tensor: Tensor, item: int | None = None) -> Tensor:
        """New bytes of the same shape."""
        return self.empty(tensor.elements, item or tensor.item)

    def alias(self, tensor: Tensor, elements: str | None = None) -> Tensor:
        """The same bytes and history under another name or shape."""
        return Tensor(
            tensor.storage,
            elements or tensor.elements,
            tensor.item,
            tensor.node,
            tensor.index,
            tensor.is_view,
        )

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
        try:
            frame.function(*frame.inputs)
        except StopRecomputationError:
            pass
        self._casts, self._recomputing = casts, outer
        self.layer, self.recording = layer, recording

    def gradients_of(
        self, output: Tensor, gradient: Tensor, inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """The gradients of `inputs`, handed back instead of kept (torch.autograd.grad)."""
        outer, self._captured = self._captured, {}
        stops, self._stops = self._stops, {x.node for x in inputs if x.node is not None}
        layer = self.layer
        self.backward([output], [gradient])
        captured, self._captured = self._captured, outer
        self.layer, self._stops = layer, stops
        return [captured.pop(id(x.node), None) for x in inputs]

    def backward(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Walk the graph from `outputs`, latest node first, as torch's engine does."""
        roots = [(tensor.node, tensor.index) for tensor in outputs]
        waiting = _count_uses([node for node, _ in roots if node is not None], self._stops)
        buffers: dict[Node, Gradients] = {}
        ready: list[tuple[int, Node]] = []
        for (node, index), gradient in zip(roots, gradients, strict=True):
            assert node is not None
            self._deliver(buffers, node, index, gradient)
            if not waiting.get(node):
                heapq.heappush(ready, (-node.sequence, node))
        while ready:
            _, node = heapq.heappop(ready)
            results = self._run(node, buffers.pop(node))
            for place, edge in enumerate(() if node in self._stops else node.edges):
                if edge is None:
                    continue
                target, index = edge
                result, results[place] = results[place], None
                if result is not None:
                    self._deliver(buffers, target, index, result)
                waiting[target] -= 1
                if not waiting[target] and target in buffers:
                    heapq.heappush(ready, (-target.sequence, target))
                del result

    def _run(self, node: Node, gradients: Gradients) -> Gradients:
        if node.sequence >= ACCUMULATE or node in self._stops:
            gradient = gradients[0]
            assert gradient is not None
            if self._captured is not None:
                self._captured[id(node)] = gradient
            else:
                self._leaves[id(node)].accumulate(gradient)
            return []
        if node.layer is not None and node.layer != self.layer:
            self.layer = node.layer
            self.ledger.mark(*node.layer, backward=True)
        for saved in node.saved:
            saved.unpack()
        results = node.run(self, gradients)
        for saved in node.saved:
            if saved.frame is not None:  # what was computed again goes as soon as it is used
                saved.free()
        node.fit(self, results)
        gradients.clear()
        for saved in node.saved:
            saved.free()
        node.saved.clear()
        return results

    def _deliver(
        self, buffers: dict[Node, Gradients], node: Node, index: int, gradient: Tensor
    ) -> None:
        """Put a gradient where a node waits for it; a second one is added to the first."""
        buffer = buffers.setdefault(node, [None] * node.outputs)
        present = buffer[index]
        if present is None:
            buffer[index] = gradient
        elif present.is_view or present.storage.holders > 1:
            # torch adds in place only to a tensor that nobody else can see (input_buffer.cpp)
            buffer[index] = self.like(present)


def _count_uses(roots: Sequence[Node], stops: set[Node]) -> dict[Node, int]:
    """How many gradients each node of the graph waits for; the walk ends at `stops`."""
    uses: dict[Node, int] = {}
    seen = set(roots)
    stack = list(roots)
    while stack:
        found = stack.pop()
        for edge in () if found in stops else found.edges:
            if edge is not None:
                node = edge[0]
                uses[node] = uses.get(node, 0) + 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
    return uses
