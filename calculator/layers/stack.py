"""Blocks one after the other: each as it is, under checkpointing, or on reversible streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import cycle
from typing import Any, Generic, Self, TypeVar

from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.errors import InputError
from calculator.layers import reversible
from calculator.layers.layer import Counted, Layer, units_of, walk
from calculator.layers.reversible import Coupling

# the most layers in turn that are looked for among those of a stack; Gemma 3's are six
LONGEST_UNIT = 8


@dataclass(eq=False)
class Block(Layer):
    """One layer of a stack."""

    def __call__(self, x: Tensor, *context: Any) -> Tensor:
        """The residual stream after the layer; `context` is what all layers share.

        Raises:
            TypeError: for a layer that only its model's own stack can run, as T5's.
        """
        raise TypeError(f"{type(self).__name__} is run by its model's own stack")

    def handed(self, *context: Any) -> tuple[Any, ...]:
        """The part of it that the layer receives and holds while it is checkpointed."""
        return context

    def recomputed(self, t: Recorder, *handed: Any) -> Callable[[Tensor], Tensor]:
        """The layer as it runs under a checkpoint, which keeps or moves the stream alone."""
        return partial(t.checkpoint, _run(self, *handed))

    def couplings(self, t: Recorder, *context: Any) -> Sequence[Coupling]:
        """The layer as branches of two reversible streams.

        Raises:
            InputError: where the layer has no such form.
        """
        raise InputError("reversible", True, "this model's layers have no reversible form")

    def at(self, slot: int, made: dict[int, Any]) -> Self:
        """The layer of a depth that uses the weights of that slot; `made` has those in use."""
        if slot not in made:
            made[slot] = self.fresh()
        block: Self = made[slot]
        return block

    def count(self, depths: int, slots: int) -> Counted:
        """Weights and tables of so many depths that use so many slots."""
        return ((item, copies * slots) for item, copies in walk(self))


B = TypeVar("B", bound=Block)


@dataclass(eq=False)
class Stack(Layer, Generic[B]):
    """So many `layers`, of kinds that are used in turn: one for all, a cycle, or one for each.

    `slots` numbers the weights that each layer uses, where that is not a slot of its own. `groups`
    says the same of a stack that is only counted: so many distinct layers, used in turn, and with
    `own_last` one more for the last layer. Under checkpointing of layers some are `keeping` their
    activations all the same; without any, all are computed again.
    """

    kinds: tuple[B, ...]
    layers: int
    name: str = "layers"
    slots: tuple[int, ...] = ()
    groups: int = 0
    own_last: bool = False
    keeping: tuple[bool, ...] = ()

    @cached_property
    def blocks(self) -> list[B]:
        """A block for each layer, those of one slot with the same weights."""
        return self.sharing({})

    def sharing(self, made: dict[int, Any]) -> list[B]:
        """The same, of which another stack may have `made` some."""
        slots = self.slots or range(self.layers)
        return [kind.at(slot, made) for kind, slot in zip(cycle(self.kinds), slots, strict=False)]

    def __call__(self, x: Tensor, *context: Any) -> Tensor:
        """The residual stream after all blocks.

        Source: checkpointing
        """
        given = [x]
        del x  # the first layer may let go of it
        return self.begun(given.pop, *context)

    def begun(self, first: Callable[[], Tensor], *context: Any) -> Tensor:
        """The same of what `first` makes, which only the first layer then holds."""
        x = first()
        t = x.tape
        if t.mode.reversible:
            layers = [block.couplings(t, *block.handed(*context)) for block in self.blocks]
            return reversible.run(layers, x, self.name)
        for position, block in enumerate(self.blocks):
            with t.in_layer(self.name, position):
                handed = block.handed(*context)
                again = self.is_checkpointed(t, position)
                run = block.recomputed(t, *handed) if again else _run(block, *handed)
                x = self.gathered(t, position, run)(x)
                del handed, run  # and what only this layer was handed
        t.ledger.mark(self.name + t.turn, len(self.blocks), backward=False)
        return x

    def beside(self, position: int) -> tuple[Parameter, ...]:
        """Weights of a layer's own module that no block has, as T5's table of biases."""
        return ()

    def units_at(self, position: int) -> list[list[Parameter]]:
        """The weights of a layer that are gathered together, then those apart."""
        weights, *apart = units_of(self.blocks[position])
        return [[*weights, *self.beside(position)], *apart]

    def units(self) -> list[list[Parameter]]:
        """The weights gathered together of each layer's module, of one kind the same parameters."""
        kinds = [units_of(kind) for kind in self.kinds]
        distinct = min(self.groups or self.layers, self.layers)
        pairs = zip(cycle(kinds), range(distinct), strict=False)
        return [
            unit
            for (weights, *apart), position in pairs
            for unit in ([*weights, *self.beside(position)], *apart)
        ]

    def gathered(
        self, t: Recorder, position: int, run: Callable[[Tensor], Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """The run of a layer, with its weights gathered around it where they are in shards."""
        if t.sharder is None:
            return run
        return partial(t.sharder.around, self.units_at(position)[0], run)

    def is_checkpointed(self, t: Recorder, position: int) -> bool:
        """True if the layer of a position is computed again as a whole."""
        keeps = bool(self.keeping) and self.keeping[position]
        return t.mode.checkpointing.is_of_layers and not keeps

    def walk(self) -> Counted:
        """The weights and tables of all layers, between those that a stack has around them."""
        names = {item.name for item in fields(self)}
        beside = {name: value for name, value in vars(self).items() if name not in names}
        for name in self.listed_first:
            yield from walk(beside.pop(name))
        turn = len(self.kinds)
        distinct = min(self.groups or self.layers, self.layers - self.own_last)
        for place, kind in enumerate(self.kinds):
            # layer i is the module of layer i modulo the groups, whatever its own kind would be
            slots = range(place, distinct, turn)
            own = self.own_last and (self.layers - 1) % turn == place
            depths = len(range(place, self.layers, turn))
            yield from kind.count(depths, len(slots) + own)
        for value in beside.values():
            yield from walk(value)


def _run(block: Block, *context: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: block(x, *context)
