"""Layers as values that can be compared, walked and rebuilt."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

from calculator.autograd.dtypes import DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.sizes import Shape


class Change(Protocol):
    """A technique's effect on the layers of a model; two with the same effect are equal."""

    def rewrite(self, layer: "Layer") -> None:
        """Rewrite a layer that was just made, not the layers in it."""


@dataclass(slots=True, eq=False)
class Buffer:
    """A table that belongs to a model and is not trained, counted with the weights.

    Without a `dtype` it is in the weights' format.
    """

    shape: Shape
    dtype: DType | None


Counted = Iterator[tuple[Parameter | Buffer, int]]


@dataclass(eq=False)
class Layer:
    """A dataclass whose fields say what it is; `__post_init__` makes its weights.

    Two layers of the same `structure` run the same operations, each on weights of its own.
    `changes` are what techniques did to it. The weights of one that `is_apart` are gathered apart
    from those around it, where they are in shards. Parts that are `listed_first` come before all
    others in transformers' class.
    """

    changes: ClassVar[tuple[Change, ...]] = ()
    listed_first: ClassVar[tuple[str, ...]] = ()
    is_apart: ClassVar[bool] = False

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """The type and every field, those that are layers by theirs."""
        values = (getattr(self, item.name) for item in fields(self))
        return (type(self), self.changes, *map(_structure, values))

    def fresh(self) -> Self:
        """The same layer with weights of its own."""
        return self.altered(
            **{item.name: _fresh(getattr(self, item.name)) for item in fields(self)}
        )

    def altered(self, **values: Any) -> Self:
        """The same layer with other field values and the same changes."""
        made = replace(self, **values)
        for change in self.changes:
            rewrite(made, change)
        return made

    def walk(self) -> Counted:
        """Every weight and table with how many of them there are, in the order of the class.

        One that stands in several places is named as often.
        """
        for value in self.listed().values():
            yield from walk(value)

    def listed(self) -> dict[str, Any]:
        """The fields in the order of transformers' class: its parts before the layers first."""
        own = vars(self)
        return {name: own[name] for name in self.listed_first if name in own} | own


class Unary(Layer, ABC):
    """A layer from one tensor to one, such as a norm."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""


def walk(value: Any) -> Counted:
    """The weights and tables in a field's value."""
    match value:
        case Parameter() | Buffer():
            yield value, 1
        case Layer():
            yield from value.walk()
        case tuple():
            for item in value:
                yield from walk(item)
        case _:
            pass


def parameters_of(*layers: Layer) -> list[Parameter]:
    """The weights of layers, each once."""
    return [*{item: None for item, _ in walk(layers) if isinstance(item, Parameter)}]


def units_of(layer: Layer) -> list[list[Parameter]]:
    """The weights of a layer that are gathered together, then those of each layer in it apart."""
    apart: list[Layer] = []
    _find_apart(layer, apart)
    nested = [parameters_of(each) for each in apart]
    theirs = {item for unit in nested for item in unit}
    return [[item for item in parameters_of(layer) if item not in theirs], *nested]


def _find_apart(value: Any, found: list[Layer]) -> None:
    match value:
        case Layer(is_apart=True):
            found.append(value)
        case Layer():
            for each in vars(value).values():
                _find_apart(each, found)
        case tuple():
            for each in value:
                _find_apart(each, found)


def weights_of(t: Recorder, *layers: Layer) -> list[Tensor]:
    """The weights of layers as tensors."""
    return [t.weight(item) for item, _ in walk(layers) if isinstance(item, Parameter)]


def _structure(value: Any) -> Any:
    if isinstance(value, Layer):
        return value.structure
    return tuple(map(_structure, value)) if isinstance(value, tuple) else value


def _fresh(value: Any) -> Any:
    if isinstance(value, Layer):
        return value.fresh()
    return tuple(map(_fresh, value)) if isinstance(value, tuple) else value


def rewrite(layer: Layer, change: Change) -> None:
    """Apply a change to a layer and all that is in it, each once."""
    if change in layer.changes:
        return
    vars(layer)["changes"] = (*layer.changes, change)
    vars(layer).pop("structure", None)
    for value in [*vars(layer).values()]:
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Layer):
                rewrite(item, change)
    change.rewrite(layer)
