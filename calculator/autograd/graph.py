"""Tensors without values, and the graph that autograd would build from them.

A tensor's life has meaning here as it has in PyTorch: its bytes die with the last Python name, and
the last node of the graph, that holds them. So a `del x` in a model's code, or a name that is held
until a function returns, is part of what is counted; where that is on purpose a comment says
``held`` or ``dies here``.

Source: torch (autograd/function.h, accumulate_grad.h, saved_variable.cpp).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import ARRIVED, Kind, Storage
from calculator.autograd.sizes import Shape, Size, divided, elements_of
from calculator.parts import Part

if TYPE_CHECKING:
    from calculator.autograd.tape import Frame, Tape

# a tape, which tensors and operations know without importing it
Recorder: TypeAlias = "Tape"


@dataclass(slots=True, eq=False)
class Parameter:
    """A weight of a model: its shape, and whether training gives it a gradient.

    Its identity is the weight's: a parameter that stands in two places is shared. With one
    sequence, its gradient is a part of a tensor of the shape `inside`, where it has one: PyTorch
    keeps a view as it is. Of a weight of experts, one after the other, a token meets only as many
    as are `chosen`. Without a `dtype` it is in the mode's format for weights; an element of that
    format may hold several numbers, `packed`. A `table` is that of an embedding or output layer.
    One that is `idle` asks for a gradient that no loss reaches, and is not `trained`. One that
    `is_split` is a share of a weight that several GPUs have, or stands beside one; a matrix is cut
    along an `axis`. The update sums the gradients that they have for one that `is_summed`.
    """

    shape: Shape
    trained: bool = True
    name: str = ""
    inside: Shape | None = None
    chosen: Size | None = None
    dtype: DType | None = None
    packed: int = 1
    table: bool = False
    idle: bool = False
    is_split: bool = False
    is_summed: bool = False
    axis: int | None = None


class Tensor:
    """A view of a storage: a shape in a number format, on a tape, with its history.

    `tape` is where it was made. `is_view` says that PyTorch made a gradient as a view of another
    tensor.
    """

    __slots__ = ("dtype", "index", "is_view", "node", "shape", "storage", "tape")

    def __init__(
        self,
        tape: Recorder,
        storage: Storage,
        shape: Shape,
        dtype: DType,
        node: "Node | None" = None,
        index: int = 0,
        is_view: bool = False,
    ) -> None:
        storage.holders += 1
        self.tape = tape
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.node = node
        self.index = index
        self.is_view = is_view

    def __del__(self) -> None:
        storage = self.storage  # as `Storage.release` does, which a call would make slower
        storage.holders -= 1
        if not storage.holders and storage.size_id:
            storage.end()

    @property
    def elements(self) -> Size:
        """The product of the shape."""
        return elements_of(self.shape)


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

    def __del__(self) -> None:
        if self.storage is not None or self.frame is not None:
            self.free()

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


class Made(NamedTuple):
    """A gradient that is new bytes; PyTorch may make it as a view of another tensor."""

    shape: Shape
    dtype: DType
    is_view: bool = False


Rule = Made | None  # None: the output's gradient is passed on
Gradients = list[Tensor | None]


@dataclass(slots=True, eq=False)
class Node:
    """One step of the backward pass: from its outputs' gradients to its inputs'.

    `rules` says for each input what its gradient is. `scratch` lives only while the node runs.
    With `product`, gradients are first made in that shape and then fitted to their rules, as the
    engine does for broadcast and mixed formats. A product of two `factors` is such a case where
    autocast is on in the backward pass. The last input may be a bias that is added to every row:
    its gradient is the output's, `summed` by the engine. A kernel makes its gradients as a `whole`,
    those that nobody needs too. `special` replaces all that. `before` is called when its turn
    comes. `name` is for a tape that names its operations, and `flops` are those
    of the products of matrices in the forward pass. A tensor of many GPUs `is_apart`: to a
    gradient of it nothing is added in place. Tensors that a node `holds` beside those that it saves
    live as long as the graph: no checkpoint drops them.
    """

    sequence: int
    layer: tuple[str, int] | None
    edges: list["tuple[Node, int] | None"]
    rules: Sequence[Rule]
    scratch: Sequence[Made] = ()
    special: Callable[[Gradients], Gradients] | None = None
    product: Made | None = None
    factors: bool = False
    summed: bool = False
    whole: bool = False
    saved: list[Saved] = field(default_factory=list)
    holds: Sequence[Tensor] = ()
    name: object = None
    flops: Size | None = None
    before: Callable[[], None] | None = None
    outputs: int = 1
    is_apart: bool = False

    @property
    def places(self) -> Sequence[int]:
        """The order in which inputs get their gradients: addmm's bias comes first."""
        last = len(self.edges) - 1
        return (last, *range(last)) if self.summed else range(last + 1)

    def run(self, tape: Recorder, gradients: Gradients) -> Gradients:
        """The inputs' gradients."""
        if self.flops is not None:
            self._compute(tape, self.flops)
        if self.special is not None:
            return self.special(gradients)
        if self.factors and tape.lowers_backward:
            return self._lowered(tape, gradients)
        results: Gradients = []
        rules = [*self.rules[:-1], None] if self.summed else self.rules
        unneeded = self._unneeded(tape, rules) if self.whole else None
        for edge, rule in zip(self.edges, rules, strict=True):
            if edge is None:
                results.append(None)
            elif rule is not None:
                results.append(tape.empty(*(self.product or rule)))
            else:
                passed = gradients[0]
                assert passed is not None
                results.append(tape.alias(passed))
        scratch = [tape.empty(*shape) for shape in self.scratch]
        del scratch, unneeded  # die here
        return results

    def _compute(self, tape: Recorder, flops: Size) -> None:
        """Note the products of matrices: one for each factor's gradient, or a kernel's five.

        Source: flash_attention (backward recomputes the scores: 5 products for the forward's 2)
        """
        rule = self.rules[0]
        assert rule is not None
        if self.whole:
            tape.ledger.compute(flops, rule.dtype, Kind.ATTENTION)
            tape.ledger.compute(flops, rule.dtype, Kind.ATTENTION)
            tape.ledger.compute(divided(flops, 2), rule.dtype, Kind.ATTENTION, again=True)
            return
        dtype = tape.mode.autocast if self.factors and tape.lowers_backward else None
        for edge in self.edges[:2]:
            if edge is not None:
                tape.ledger.compute(flops, dtype or rule.dtype)

    def _unneeded(self, tape: Recorder, rules: Sequence[Rule]) -> list[Tensor]:
        """Gradients that a kernel makes with the others, and nobody needs."""
        return [
            tape.empty(*rule)
            for edge, rule in zip(self.edges[:3], rules, strict=False)
            if edge is None and rule is not None
        ]

    def _lowered(self, tape: Recorder, gradients: Gradients) -> Gradients:
        """Both products under autocast, the second factor's gradient first; casts die with each."""
        (gradient,), dtype = gradients, tape.mode.autocast
        assert gradient is not None
        assert dtype is not None
        results: Gradients = [None, None]
        for place in (1, 0):
            rule, other = self.rules[place], self.rules[1 - place]
            assert rule is not None
            assert other is not None
            if self.edges[place] is not None:
                casts = tape.like(gradient, dtype), tape.empty(other.shape, dtype)
                results[place] = tape.empty(rule.shape, dtype, rule.is_view)
                del casts
        return results

    def fit(self, tape: Recorder, results: Gradients) -> None:
        """Bring gradients into their inputs' shapes and formats, as the engine does."""
        lowered = self.factors and tape.lowers_backward
        if not (self.product or lowered or self.summed):
            return
        for place, rule in enumerate(self.rules if self.product or lowered else ()):
            result = results[place]
            if result is None or rule is None:
                continue
            other_format = result.dtype is not rule.dtype
            other_shape = result.elements is not elements_of(rule.shape)
            if not (other_format or other_shape):
                continue
            if other_format and other_shape:
                result = results[place] = tape.empty(rule.shape, result.dtype)  # summed, then cast
            results[place] = tape.empty(*rule)
            del result
        if self.summed and results[-1] is not None and (rule := self.rules[-1]) is not None:
            results[-1] = tape.empty(*rule)


class Leaf(Tensor):
    """A tensor that gets a gradient of its own."""

    __slots__ = ("gradient", "has_gradient", "takes_view")

    def __init__(
        self, tape: Recorder, storage: Storage, shape: Shape, dtype: DType, order: int
    ) -> None:
        super().__init__(tape, storage, shape, dtype, Node(ACCUMULATE + order, None, [], ()))
        self.gradient: Tensor | None = None
        self.has_gradient = False
        self.takes_view = False  # whether its gradient is a part of a larger tensor

    def accumulate(self, gradient: Tensor) -> None:
        """Take the first gradient, or copy what others hold too; later ones are added in place.

        Source: torch (autograd/functions/accumulate_grad.h)
        """
        if self.has_gradient:
            return
        self.has_gradient = True
        is_shared = gradient.storage.holders > 1 and not self.takes_view
        self.gradient = self.tape.like(gradient) if is_shared else gradient
        if self.storage.held_id:
            self.tape.hand_out(self.gradient)


class Weight(Leaf):
    """A parameter; its own bytes are static, its gradient is born in the backward pass."""

    __slots__ = ()

    def accumulate(self, gradient: Tensor) -> None:
        """The same, and count it with the gradients."""
        self.tape.ledger.remark(ARRIVED, self.elements, self.dtype)
        super().accumulate(gradient)
        if self.gradient is not None and self.tape.mode.shards is None:
            self.gradient.storage.become(Part.GRADIENTS)
            if self.tape.mode.gradients_leave and self.tape.reduces:
                self.gradient = None
            if self.tape.mode.updates is not None:
                self.update(self.tape.mode.updates)

    def let_go(self) -> None:
        """Its gradient has been copied elsewhere; the next one is its first again."""
        self.gradient, self.has_gradient = None, False

    def update(self, temporaries: int) -> None:
        """Update the weight inside the backward pass; then its gradient goes."""
        made = [self.tape.empty(self.shape, self.dtype) for _ in range(temporaries)]
        del made  # die here
        self.gradient = None
