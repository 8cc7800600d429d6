"""FSDP2 on a stage of a pipeline, whose micro-batches share its units.

The stage switches the reduction off until all micro-batches are back. A unit's whole gradients add
up, in the format in which they are reduced, and its weights stay gathered after a backward pass
until a forward pass gives them up again. Then all units are reduced one after the other, the root
first.

A schedule of several stages gathers all units of a stage ahead, and copies them out before the
first pass that follows.

Source: fsdp2, torch (distributed/pipelining/stage.py, backward_maybe_with_nosync,
perform_reduce_grad; distributed/pipelining/schedules.py, UNSHARD)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from calculator.autograd.dtypes import DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.ledger import AHEAD, COPIED, REDUCTION
from calculator.autograd.sharding import Sharder, Unit


class StageSharder(Sharder):
    """The units of one stage through all passes of its micro-batches.

    Of each stack's layers it has the weights that are gathered together, and those apart.
    """

    def __init__(
        self,
        tape: Recorder,
        shards: DType,
        root: Sequence[Parameter],
        stacks: Mapping[str, Sequence[Sequence[Sequence[Parameter]]]],
    ) -> None:
        super().__init__(tape, shards)
        self.stacks = stacks
        self.ahead = ""  # the turn in which all was gathered ahead, until it is copied out
        self.times = 0
        self.units: dict[Parameter, Unit] = {}
        self.root = self._unit(root) if root else None
        self.wide: dict[Parameter, Tensor] = {}
        self.layers: dict[Unit, tuple[str, int]] = {}

    def _unit(self, parameters: Sequence[Parameter]) -> Unit:
        found = self.units.get(parameters[0])
        if found is None:
            found = self.units[parameters[0]] = Unit(parameters, self.tape.mode.weights)
        return found

    def gather(self, turn: str) -> None:
        """The schedule gathers all weights that are not whole, into flat tensors."""
        self.ahead = turn
        for unit in self._marked(AHEAD):
            self._gather(unit)

    def receive(self) -> None:
        """Copy out all that was gathered ahead, before the next pass."""
        for unit in self._marked(COPIED) if self.ahead else ():
            if unit.gathered is not None:
                self._copy_out(unit)
                unit.gathered = None
        self.ahead = ""

    def let_go(self) -> None:
        """The schedule gives up all weights."""
        for unit in self.units.values():
            unit.whole.clear()

    def _marked(self, end: str) -> Iterator[Unit]:
        """The root and all layers' units; a mark says in whose turn."""
        if self.root is not None:
            yield self.root
        for name, layers in self.stacks.items():
            for position, units in enumerate(layers):
                self.tape.ledger.mark(name + self.ahead + end, position, backward=False)
                yield from map(self._unit, units)
            self.tape.ledger.mark(name + self.ahead + end, len(layers), backward=False)

    def begin_forward(self) -> None:
        """A micro-batch goes forward: the root's weights are gathered once, and stay."""
        if self.root is not None and not self.root.whole:
            self._before_forward(self.root)

    def end_forward(self, out: Tensor) -> None:
        """The stage has its output, whose gradient begins the backward pass."""
        self.held = None
        if self.root is None or out.node is None:
            return
        if self.root not in self.order:
            self.order.append(self.root)
        first = partial(self._before_backward, self.root)
        out.node.before = partial(_in_turn, first, out.node.before)

    def around(
        self,
        parameters: Sequence[Parameter],
        run: Callable[[Tensor], Tensor],
        x: Tensor,
        reshards: bool = False,
    ) -> Tensor:
        """The output of a layer with its weights gathered around it, where they are not yet."""
        unit = self._unit(parameters)
        if self.tape.layer is not None:
            self.layers.setdefault(unit, self.tape.layer)
        if not unit.whole:
            self._before_forward(unit)
        x = self._watched(unit, x)
        x = run(x)
        if reshards or self.tape.mode.reshards:
            unit.whole.clear()
        if unit not in self.order:
            self.order.append(unit)
        if x.node is not None:
            x.node.before = partial(self._before_backward, unit)
        return x

    def _place(self, unit: Unit) -> int:
        """The unit's place among those of one micro-batch."""
        return self.order.index(unit)

    def end_backward(self) -> None:
        """A micro-batch is back, for the units too whose inputs got no gradient."""
        for unit in self.order:
            if not unit.is_done:
                self._after_backward(unit)
            unit.is_done = False

    def reduce(self) -> None:
        """All micro-batches are back: whole gradients become shards of their sums."""
        if self.root is not None:
            super()._after_backward(self.root)
        for unit in (each for each in self.order if each is not self.root):
            stack, position = self.layers[unit]
            self.tape.ledger.mark(stack + REDUCTION, position, backward=False)
            super()._after_backward(unit)
            self.tape.ledger.mark(stack + REDUCTION, position + 1, backward=False)
        self.reduced = None

    def _after_backward(self, unit: Unit) -> None:
        """Gradients of a narrower format than they are reduced in are added to wider ones."""
        unit.is_done = True
        if not self.tape.mode.narrows_shards:
            return
        for item in unit.trained:
            weight = self.tape.weight(item)
            if item not in self.wide:
                self.wide[item] = self.tape.empty(item.shape, unit.reduced_format(self.shards))
            weight.let_go()

    def _let_go(self, item: Parameter) -> None:
        self.wide.pop(item, None)
        super()._let_go(item)


def _in_turn(first: Callable[[], None], then: Callable[[], None] | None) -> None:
    first()
    if then is not None:
        then()
