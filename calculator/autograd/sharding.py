"""FSDP2 on the tape: weights in shards, gathered by layer where they are needed.

Each layer's weights are a unit, and all others the root's. A unit's weights are gathered into one
flat tensor and copied out of it into whole weights. In the forward pass the flat tensor of a unit
lives until the next unit has gathered its own; in the backward pass the next unit is gathered while
one runs. A unit's whole weights go when it has run, except the root's; where they are not
resharded, they stay until its backward pass is over. Its whole gradients are copied into one flat
tensor, which is reduced into this GPU's shards of them and lives until the next unit has its own.

Frozen weights are gathered like all others and have no gradients to reduce. Weights of several
formats are gathered as bytes. A unit whose input needs no gradient, as the first layer's under
frozen embeddings, is told by nobody that it is done: it holds its weights and gradients to the end
of the backward pass.

Shards in RAM are copied to the GPU to be gathered, and those of gradients go there at once. An
update inside the backward pass runs once a unit's gradients are in shards.

Rows are padded to a multiple of the GPUs, so that all shards are equal.

Source: fsdp2, torch (distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py,
_fsdp_state.py)
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

from calculator.autograd.dtypes import UINT8, DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.ledger import FETCHED, STORED, UNIT_ALL_GATHER, UNIT_REDUCE_SCATTER
from calculator.autograd.sizes import Size, derived, divided, elements_of, padded_to, size
from calculator.parts import Part

GPUS: Final = size("gpus")


def whole_elements(item: Parameter) -> Size:
    """Elements of a weight whose rows are padded to a multiple of the GPUs.

    A packed weight is one column of what is stored.
    """
    shape = item.shape
    if item.packed > 1:
        shape = (divided(elements_of(shape), item.packed),)
    return elements_of((padded_to(shape[0], GPUS), *shape[1:]))


@cache
def flat_elements(*wholes: Size) -> Size:
    """Elements of the flat tensor of a unit's weights."""
    return derived("weights of a unit", lambda *sizes: sum(sizes), *wholes)


@cache
def shard_elements(flat: Size) -> Size:
    """Elements of one GPU's share of a flat tensor."""
    return derived("a shard of a unit", lambda elements, gpus: elements // gpus, flat, GPUS)


class Unit:
    """Weights that are gathered together; `gathered` is flat, `whole` are the weights.

    They are gathered in the format of `weights`, those with a format of their own in theirs; `flat`
    elements of `dtype` hold them all. `trained` are those that get gradients, of `summed` elements
    together. Its `places` are those that it has in the order of forward passes.
    """

    def __init__(self, parameters: Sequence[Parameter], weights: DType) -> None:
        self.parameters = tuple(parameters)
        self.sizes = tuple(whole_elements(item) for item in parameters)
        self.formats = tuple(item.dtype or weights for item in parameters)
        self.dtype = self.formats[0]
        self.flat = flat_elements(*self.sizes)
        if len({*self.formats}) > 1:
            self.dtype = UINT8
            pairs = zip(self.sizes, self.formats, strict=True)
            self.flat = flat_elements(*(each * dtype.width for each, dtype in pairs))
        self.trained = tuple(item for item in parameters if item.trained)
        self.summed = flat_elements(*(whole_elements(item) for item in self.trained))
        self.gathered: Tensor | None = None
        self.whole: list[Tensor] = []
        self.places: list[int] = []
        self.is_done = False

    def reduced_format(self, shards: DType) -> DType:
        """The format of its gradients, whole and in shards: all that are trained have one."""
        return self.trained[0].dtype or shards


class Sharder:
    """The units of a step in the order in which they run, and what they hold.

    Shards and reduced gradients are in `shards`, gathered weights in the mode's format for weights;
    both are in a weight's own format where it has one.
    """

    def __init__(self, tape: Recorder, shards: DType) -> None:
        self.tape = tape
        self.shards = shards
        self.order: list[Unit] = []
        self.held: Tensor | None = None
        self.reduced: Tensor | None = None
        self.kept: list[Tensor] = []
        self.first: Unit | None = None

    # -- the root --------------------------------------------------------------------------------

    def begin(self, parameters: Sequence[Parameter]) -> Unit:
        """The forward pass begins: the root's weights are gathered, and stay to the end."""
        root = Unit(parameters, self.tape.mode.weights)
        self._before_forward(root)
        return root

    def turn(self, root: Unit) -> None:
        """The forward pass is over, and the backward pass begins."""
        self._note(root)
        self.held = None
        self._before_backward(root)

    def end(self, root: Unit) -> None:
        """The backward pass is over, for the units too whose inputs got no gradient."""
        self._after_backward(root)
        for unit in self.order:
            if not unit.is_done:
                self._after_backward(unit)
            unit.gathered = None  # for nothing, where a layer was computed again
        self.reduced = None

    # -- a layer ---------------------------------------------------------------------------------

    def around(
        self,
        parameters: Sequence[Parameter],
        run: Callable[[Tensor], Tensor],
        x: Tensor,
        reshards: bool = False,
    ) -> Tensor:
        """The output of a layer with its weights gathered around it, in both directions.

        A layer that `reshards` does so whatever the others do.
        """
        unit = self._unit(parameters)
        if self.tape.recomputes:
            return self._again(unit, run, x)
        self._before_forward(unit)
        x = run(self._watched(unit, x))
        if reshards or self.tape.mode.reshards:
            unit.whole.clear()
        self._note(unit)
        if x.node is not None:
            x.node.before = partial(self._before_backward, unit)
        return x

    def _again(self, unit: Unit, run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """The output inside a layer that is computed again; the weights stay for backward.

        The first unit takes itself for the root of a forward pass, and lets go of what is held at
        its end, which it may never reach.
        """
        self.first = self.first or unit
        self._before_forward(unit)
        x = run(x)
        if self.first is unit:
            self.held = self.first = None
        return x

    def _unit(self, parameters: Sequence[Parameter]) -> Unit:
        """The unit of a layer's weights: a new one, unless the layer ran before."""
        known = (unit for unit in self.order if unit.parameters == tuple(parameters))
        return next(known, None) or Unit(parameters, self.tape.mode.weights)

    def _note(self, unit: Unit) -> None:
        """A unit's forward pass is over; one that is computed again has several."""
        unit.places.append(len(self.order))
        self.order.append(unit)

    def _watched(self, unit: Unit, x: Tensor) -> Tensor:
        """The same tensor; when its gradient is complete, so are those of the unit's weights."""
        node = self.tape.record([x], rules=[None])
        if node is None:
            return x
        node.before = partial(self._after_backward, unit)
        return Tensor(self.tape, x.storage, x.shape, x.dtype, node)

    # -- what happens around each ----------------------------------------------------------------

    def _gather(self, unit: Unit) -> None:
        if unit.gathered is not None or unit.whole:
            return
        own = self._own(unit)
        self.tape.ledger.remark(UNIT_ALL_GATHER, unit.flat, unit.dtype)
        unit.gathered = self.tape.empty((unit.flat,), unit.dtype)
        del own  # dies here

    def _own(self, unit: Unit) -> list[Tensor]:
        """Shards of one GPU as they are gathered, where they are not so already.

        All are cast into one tensor; those in RAM are copied here and cast one by one.
        """
        is_cast = self.tape.mode.narrows_shards
        if not self.tape.mode.shards_in_ram:
            share = (shard_elements(unit.flat),)
            return [self.tape.empty(share, unit.dtype)] if is_cast else []
        made = []
        for whole, dtype in zip(unit.sizes, unit.formats, strict=True):
            copied = self.tape.empty((shard_elements(whole),), self.shards if is_cast else dtype)
            self.tape.ledger.remark(FETCHED, copied.elements, copied.dtype)
            made.append(self.tape.like(copied, dtype) if is_cast else copied)
            del copied  # dies here where it was cast
        return made

    def _before_forward(self, unit: Unit) -> None:
        self._gather(unit)
        if unit.gathered is None:  # still whole from when its layer ran before
            return
        self._copy_out(unit)  # the one before is held by a local name until this is done
        self.held, unit.gathered = unit.gathered, None

    def _before_backward(self, unit: Unit) -> None:
        self._gather(unit)
        if unit.gathered is not None:
            self._copy_out(unit)
            unit.gathered = None
        place = self._place(unit)
        if place > 0:
            self._gather(self.order[place - 1])

    def _place(self, unit: Unit) -> int:
        """The unit's place in the order of forward passes, the last one first."""
        return unit.places.pop()

    def _copy_out(self, unit: Unit) -> None:
        pairs = zip(unit.sizes, unit.formats, strict=True)
        unit.whole = [self.tape.empty((each,), dtype) for each, dtype in pairs]

    def _after_backward(self, unit: Unit) -> None:
        unit.is_done = not unit.places  # a layer that ran before has its gradients then
        unit.whole.clear()
        self.reduced = None
        if not (unit.is_done and unit.trained):
            return
        dtype = unit.reduced_format(self.shards)
        flat = self.tape.empty((unit.summed,), dtype)
        self.tape.ledger.remark(UNIT_REDUCE_SCATTER, unit.summed, dtype)
        *others, last = unit.trained
        for item in others:
            self._let_go(item)
        shard = self.tape.empty((shard_elements(unit.summed),), dtype)
        self._let_go(last)  # a name of PyTorch's own loop over the gradients holds it until here
        mode = self.tape.mode
        if mode.shards_in_ram:
            self.tape.ledger.remark(STORED, shard.elements, dtype)
        if mode.updates is not None:
            self._update(unit, mode.updates)
        elif not (mode.gradients_exist or mode.shards_in_ram):  # else it is added, or goes to RAM
            shard.storage.become(Part.GRADIENTS)
            self.kept.append(shard)
        self.reduced = flat

    def _update(self, unit: Unit, temporaries: int) -> None:
        """Update the shards of a unit's weights one by one; then their gradients go."""
        for item in () if self.tape.mode.shards_in_ram else unit.trained:
            share, dtype = shard_elements(whole_elements(item)), unit.reduced_format(self.shards)
            made = [self.tape.empty((share,), dtype) for _ in range(temporaries)]
            del made  # die here

    def _let_go(self, item: Parameter) -> None:
        """The whole gradient of a weight has been copied."""
        self.tape.weight(item).let_go()
