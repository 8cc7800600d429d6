"""A training step on tensors that have shapes but no values.

PyTorch's autograd in small: each operation allocates its output and keeps the tensors that its
backward formula needs; a tensor dies with the last Python variable that holds it and the last
graph node that needs it, just as PyTorch's do, so a layer's forward reads like the model's own
code. The ledger notes every birth and death, and `calculator.peaks` adds them up.

Source: torch (autograd/engine.cpp, input_buffer.cpp, torch/utils/checkpoint.py, autocast).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from calculator.autograd.dtypes import INT64, UINT8, DType
from calculator.autograd.graph import (
    Leaf,
    Made,
    Node,
    Parameter,
    Rule,
    Saved,
    Tensor,
    Weight,
)
from calculator.autograd.ledger import MOVED, PREVIOUS, TEMPORARIES, Kind, Ledger, Storage
from calculator.autograd.mode import Checkpointing, Costly, Mode
from calculator.autograd.results import Results
from calculator.autograd.sharding import Sharder
from calculator.autograd.sizes import Shape, ShapeError, Size, elements_of
from calculator.parts import Part

T = TypeVar("T")


class StopRecomputationError(Exception):
    """Every tensor that was thrown away is there again."""


class Frame:
    """A checkpointed part of the model: keeps its inputs and recomputes the rest on demand."""

    def __init__(
        self, tape: "Tape", function: Callable[..., object], inputs: Sequence[Tensor]
    ) -> None:
        self.tape = tape
        self.function = function
        self.layer = tape.layer
        self.moved = tape.mode.moves_inputs
        self.inputs: list[Tensor]
        if self.moved:
            self.inputs = [tape.moved(x) for x in inputs]
        else:
            self.inputs = [x if isinstance(x, Leaf) else tape.alias(x) for x in inputs]
        for tensor in self.inputs:
            tensor.storage.save()
        by_operation = tape.mode.checkpointing is Checkpointing.OPERATIONS
        self.results = Results() if by_operation else None
        self.packed = 0
        self.dropped: set[int] = set()
        self.kept: list[Storage | None] | None = None

    def __del__(self) -> None:
        for tensor in self.inputs:
            tensor.storage.unsave()

    def pack(self) -> int:
        """Discard a tensor, but remember its place."""
        self.packed += 1
        return self.packed - 1

    def keep(self, storage: Storage) -> None:
        """The next place's tensor, recomputed; after the last one, the forward pass stops."""
        assert self.kept is not None
        if len(self.kept) in self.dropped:
            self.kept.append(None)
        else:
            storage.save()
            self.kept.append(storage)
        if len(self.kept) == self.packed:
            raise StopRecomputationError

    def given(self) -> list[Tensor]:
        """The inputs; those in RAM are copied back."""
        return [self.tape.brought(x) for x in self.inputs] if self.moved else self.inputs

    def unpack(self) -> None:
        """Run the forward pass again, the first time that one of its tensors is needed."""
        if self.kept is None:
            self.kept = []
            if self.results is not None:
                self.results.begin_again()
            self.tape.recompute(self)

    def free(self, slot: int) -> None:
        """The node that wanted this tensor is done, or was dropped before it could want it."""
        if self.kept is None:
            self.dropped.add(slot)
        elif (storage := self.kept[slot]) is not None:
            storage.unsave()
            self.kept[slot] = None


class Tape:
    """Records a step: allocates, keeps and casts.

    Attributes that change while a step runs (`autocast`, `recording`, `cache_casts`,
    `lowers_backward`, `apart`, `turn`, `layer` and the private ones) are set by `setting` alone,
    so that an exception restores them.
    """

    def __init__(self, mode: Mode, ledger: Ledger | None = None) -> None:
        self.mode = mode
        self.ledger = ledger or Ledger()
        self.autocast = mode.autocast
        self.recording = True
        self.cache_casts = True
        self.lowers_backward = False  # whether autocast is on in the backward pass, too
        self.apart = False  # whether tensors are parts of those that many GPUs have
        self.reduces = True  # whether this pass is one whose gradients GPUs add up
        self.turn = ""  # the micro-batch of a pipeline that runs, as stacks and layers name it
        self.layer: tuple[str, int] | None = None
        self.running: object = None  # the name of the node that runs
        self.leaves: dict[int, Leaf] = {}
        self.captured: dict[int, Tensor] | None = None
        self.stops: set[Node] = set()
        self.inputs: list[Tensor] = []
        self._size_ids: dict[tuple[Shape, DType], int] = {}
        self._static = Storage(self.ledger, 0, Part.WEIGHTS)
        self._weights: dict[Parameter, Weight] = {}
        self._sequence = 0
        self.sharder = None if mode.shards is None else Sharder(self, mode.shards)
        self._casts: dict[int, Tensor] = {}
        self._frame: Frame | None = None
        self._recomputing: Frame | None = None

    def drop(self) -> None:
        """Let go of the tensors that name this tape: it then goes at once, without a search."""
        for tensors in (self._weights, self.leaves, self.inputs, self._casts):
            tensors.clear()
        self.sharder = None

    @contextmanager
    def setting(self, **state: Any) -> Iterator[None]:
        """Attributes of the tape as they are within the block; an exception restores them too."""
        before = {name: getattr(self, name) for name in state}
        try:
            for name, value in state.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    @contextmanager
    def in_layer(self, stack: str, position: int) -> Iterator[None]:
        """Operations inside belong to that layer."""
        stack += self.turn
        self.ledger.mark(stack, position, backward=False)
        with self.setting(layer=(stack, position)):
            yield

    # -- tensors -----------------------------------------------------------------------------

    def empty(self, shape: Shape, dtype: DType, is_view: bool = False) -> Tensor:
        """New bytes."""
        ledger, key = self.ledger, (shape, dtype)
        size_id = self._size_ids.get(key)
        if size_id is None:
            size_id = self._size_ids[key] = ledger.size_id(elements_of(shape), dtype)
        return Tensor(self, Storage(ledger, size_id, TEMPORARIES), shape, dtype, None, 0, is_view)

    def like(self, tensor: Tensor, dtype: DType | None = None) -> Tensor:
        """New bytes of the same shape."""
        return self.empty(tensor.shape, dtype or tensor.dtype)

    def alias(self, tensor: Tensor, shape: Shape | None = None) -> Tensor:
        """The same bytes and history under another name or shape.

        Raises:
            ShapeError: for a shape of another number of elements.
        """
        if shape is not None and elements_of(shape) is not tensor.elements:
            raise ShapeError(f"{tensor.shape} cannot be seen as {shape}")
        return Tensor(
            self,
            tensor.storage,
            shape or tensor.shape,
            tensor.dtype,
            tensor.node,
            tensor.index,
            tensor.is_view,
        )

    def weight(self, parameter: Parameter) -> Weight:
        """A parameter as a tensor, the same one each time."""
        if parameter not in self._weights:
            dtype = parameter.dtype or self.mode.weights
            weight = Weight(self, self._static, parameter.shape, dtype, len(self._weights))
            weight.takes_view = parameter.inside is not None and self.mode.one_sequence
            weight.has_gradient = self.mode.gradients_exist and self.mode.shards is None
            self._weights[parameter] = weight
            if parameter.trained:
                self.leaves[id(weight.node)] = weight
            else:
                weight.node = None
        return self._weights[parameter]

    def leaf(self, tensor: Tensor) -> Leaf:
        """The same bytes as a tensor that gets a gradient without being a weight."""
        self._sequence += 1
        order = self._sequence + (1 << 40)
        leaf = Leaf(self, tensor.storage, tensor.shape, tensor.dtype, order)
        # gradients flow to the first one, not to its copy, and to none without a graph
        if self._recomputing is None and self.recording:
            self.leaves[id(leaf.node)] = leaf
        return leaf

    def forget(self, leaf: Leaf) -> None:
        """The leaf's gradient has been asked for; it is not needed any more."""
        self.leaves.pop(id(leaf.node), None)

    def input(self, shape: Shape, dtype: DType = INT64) -> Tensor:
        """An input such as token ids, which the training loop holds throughout the step."""
        size_id = self.ledger.size_id(elements_of(shape), dtype)
        storage = Storage(self.ledger, size_id, Part.ACTIVATIONS, fixed=True)
        self.inputs.append(Tensor(self, storage, shape, dtype))
        return self.inputs[-1]

    def previous_outputs(self) -> Tensor:
        """Bytes of the forward pass before, which the training loop may still hold."""
        size_id = self.ledger.size_id(PREVIOUS, UINT8)
        storage = Storage(self.ledger, size_id, Part.ACTIVATIONS, fixed=True)
        return Tensor(self, storage, (PREVIOUS,), UINT8)

    def constant(self, shape: Shape, dtype: DType) -> Tensor:
        """A tensor that exists throughout the step and is counted with the weights."""
        return Tensor(self, self._static, shape, dtype)

    def hand_out(self, *tensors: Tensor) -> None:
        """The model returns these beside its loss; the training loop may hold them."""
        for tensor in tensors:
            if tensor.storage.size_id and not tensor.storage.held_id:
                self.ledger.hand_out(tensor.storage)

    def moved(self, tensor: Tensor) -> Tensor:
        """The tensor in RAM: no bytes, and the same history."""
        self.ledger.remark(MOVED, tensor.elements, tensor.dtype)
        return self._of(tensor, self._static)

    def brought(self, tensor: Tensor) -> Tensor:
        """A copy on the GPU of a tensor in RAM."""
        size_id = self.ledger.size_id(tensor.elements, tensor.dtype)
        return self._of(tensor, Storage(self.ledger, size_id, TEMPORARIES))

    def _of(self, tensor: Tensor, storage: Storage) -> Tensor:
        """The tensor in other bytes; a leaf stays one, whose copy autocast caches."""
        if not isinstance(tensor, Leaf):
            return Tensor(self, storage, tensor.shape, tensor.dtype, tensor.node, tensor.index)
        leaf = Leaf(self, storage, tensor.shape, tensor.dtype, 0)
        leaf.node = tensor.node
        return leaf

    # -- operations --------------------------------------------------------------------------

    def operation(
        self,
        inputs: Sequence[Tensor],
        shape: Shape,
        dtype: DType,
        saves: Sequence[Tensor] = (),
        keeps: bool = False,
        beside: Sequence[Made] = (),
        costly: Costly | None = None,
        flops: Size | None = None,
        **node: Any,
    ) -> Tensor:
        """One differentiable operation; by default each input's gradient is new bytes.

        Args:
            inputs: tensors that may need a gradient.
            shape: the output's.
            dtype: the output's.
            saves: tensors that its backward formula needs and that exist before the output.
            keeps: true if the formula also needs the output.
            beside: tensors that the formula needs and that are made along with the output.
            costly: the kind of an operation whose results some checkpoints keep.
            flops: those of its products of matrices, of which backward repeats its share.
            node: `rules`, `scratch`, `product` and the others of `graph.Node`.
        """
        made = self.record(inputs, saves=saves, **node)
        if made:
            made.flops = flops
        results = None if costly is None else self._keeping(costly)
        if results is not None and self._recomputing is not None:
            output, *others = results.handed(self, (Made(shape, dtype), *beside))
        else:
            if flops is not None:
                kind = Kind.ATTENTION if costly is Costly.ATTENTION else Kind.PLAIN
                self.ledger.compute(flops, inputs[0].dtype, kind)
            output = self.empty(shape, dtype)
            others = [self.empty(*each) for each in beside]
            if results is not None:
                results.keep((output, *others))
        if made:
            output.node = made
            self._save(made, (output, *others) if keeps else others)
        return output

    def _keeping(self, costly: Costly) -> Results | None:
        """Results that the checkpointed layer keeps, if these of an operation are among them."""
        frame = self._frame or self._recomputing
        if frame is None or frame.results is None or not frame.results.chosen(costly):
            return None
        return frame.results

    @property
    def has_results(self) -> bool:
        """True if attention is not computed, because its results are there."""
        return self._recomputing is not None and self._recomputing.results is not None

    def record(
        self,
        inputs: Sequence[Tensor],
        rules: Sequence[Rule] | None = None,
        saves: Sequence[Tensor] = (),
        **node: Any,
    ) -> Node | None:
        """A node of the graph, which is as `node` says; None if nothing needs a gradient."""
        if not self.recording:
            return None
        edges = [None if x.node is None else (x.node, x.index) for x in inputs]
        if not any(edges):
            return None
        if rules is None:
            rules = [Made(x.shape, x.dtype) for x in inputs]
        self._sequence += 1
        made = Node(self._sequence, self.layer, edges, rules, is_apart=self.apart, **node)
        self._save(made, saves)
        return made

    def _save(self, node: Node, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            if self._recomputing is not None:
                # what is computed again may outlive the layer, with all that its graph needs
                node.saved.append(Saved(tensor.storage))
                self._recomputing.keep(tensor.storage)
            elif self._frame is not None:
                node.saved.append(Saved(None, self._frame))
            elif tensor.storage.size_id:
                node.saved.append(Saved(tensor.storage))

    # -- autocast ----------------------------------------------------------------------------

    def cast(self, tensor: Tensor, dtype: DType) -> Tensor:
        """The tensor in another number format; the tensor itself if it already has it."""
        return tensor if tensor.dtype is dtype else self.operation([tensor], tensor.shape, dtype)

    def lower(self, tensor: Tensor) -> Tensor:
        """Input of a matrix product under autocast: 16 bits, weights cast once per forward pass."""
        if self.autocast is None or tensor.dtype.width <= self.autocast.width:
            return tensor
        if not isinstance(tensor, Leaf) or tensor.node is None or not self.cache_casts:
            return self.cast(tensor, self.autocast)
        key = id(tensor)
        if key not in self._casts:
            self._casts[key] = self.cast(tensor, self.autocast)
        return self._casts[key]

    def end_autocast(self) -> None:
        """Leaving autocast forgets its 16-bit copies; the graph may still keep them."""
        self._casts.clear()

    # -- checkpointing -----------------------------------------------------------------------

    def checkpoint(self, function: Callable[..., T], *inputs: Tensor) -> T:
        """Run `function` keeping only its inputs, as torch.utils.checkpoint without reentry."""
        if self._recomputing is not None or self._frame is not None:
            return function(*inputs)
        with self.setting(_frame=Frame(self, function, inputs)):
            return function(*inputs)

    @property
    def keeps(self) -> bool:
        """True if nodes keep their saved tensors instead of recomputing them."""
        return self._frame is None

    @property
    def recomputes(self) -> bool:
        """True if what was thrown away is computed again."""
        return self._recomputing is not None

    def recompute(self, frame: Frame) -> None:
        """Rerun a checkpointed forward pass until all discarded tensors are back."""
        again = self.setting(_casts={}, _recomputing=frame, layer=frame.layer, recording=True)
        given = frame.given()
        with again, self.ledger.repeating(), suppress(StopRecomputationError):
            frame.function(*given)
        del given  # held until here
