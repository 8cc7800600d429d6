"""Sizes as values: named dimensions, their products, and shapes.

A dimension has a name but no number, so that one recorded step serves every model of the same
structure; `number_of` gives a product's number for a mapping of names to numbers. Dimensions and
products are interned: two that are equal are the same object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from typing import Final


@dataclass(slots=True, eq=False, repr=False)
class Dimension:
    """A named number, or one that `rule` computes from the numbers of `bases`."""

    name: str
    bases: "tuple[Size, ...]" = ()
    rule: Callable[..., int] = int

    def number(self, numbers: "Numbers") -> int:
        """The dimension's number."""
        if not self.bases:
            return numbers[self.name]
        return self.rule(*(number_of(base, numbers) for base in self.bases))

    def __repr__(self) -> str:
        return self.name


@dataclass(slots=True, eq=False, repr=False)
class Size:
    """A whole number times dimensions; make one with `size`, `*` and the functions below."""

    factor: int
    dimensions: tuple[Dimension, ...]

    def __mul__(self, other: "Size | int") -> "Size":
        return _product(self, other if isinstance(other, Size) else _interned(other, ()))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        names = [dimension.name for dimension in self.dimensions]
        return " * ".join([str(self.factor), *names] if self.factor != 1 or not names else names)


Numbers = Mapping[str, int]
Shape = tuple[Size, ...]


class ShapeError(Exception):
    """Shapes that do not fit: a bug in a model's code, never in a user's input."""


@cache
def _interned(factor: int, dimensions: tuple[Dimension, ...]) -> Size:
    return Size(factor, dimensions)


@cache
def _product(one: Size, other: Size) -> Size:
    dimensions = sorted(one.dimensions + other.dimensions, key=lambda item: item.name)
    return _interned(one.factor * other.factor, tuple(dimensions))


@cache
def size(name: str) -> Size:
    """The size of that name alone, such as ``size("hidden")``."""
    return _interned(1, (Dimension(name),))


def constant(number: int) -> Size:
    """A size that is the same in every model of a structure."""
    return _interned(number, ())


ONE: Final = constant(1)


def derived(name: str, rule: Callable[..., int], *bases: Size) -> Size:
    """The size that `rule` computes from the numbers of others; `name` stands for all of it."""
    if not any(base.dimensions for base in bases):
        return constant(rule(*(base.factor for base in bases)))
    return _interned(1, (Dimension(name, bases, rule),))


@cache
def plus(base: Size, number: int) -> Size:
    """The size with a number added, for example one more token."""
    return derived(f"({base} + {number})", lambda size: size + number, base)


@cache
def together(*bases: Size) -> Size:
    """The sum of sizes, for example text and image tokens."""
    return derived(f"({' + '.join(map(str, bases))})", lambda *sizes: sum(sizes), *bases)


@cache
def without(base: Size, part: Size) -> Size:
    """The rest of a size after removing a part of it."""
    return derived(f"({base} - {part})", lambda size, less: size - less, base, part)


@cache
def divided(base: Size, by: int) -> Size:
    """A part of the size, for example half of a head."""
    return derived(f"({base} / {by})", lambda size: size // by, base)


@cache
def rounded_up(base: Size, multiple: int) -> Size:
    """The size rounded up to a multiple, as kernels want their rows."""
    name = f"({base} rounded up to {multiple})"
    return derived(name, lambda size: -(-size // multiple) * multiple, base)


@cache
def padded_to(base: Size, other: Size) -> Size:
    """The size rounded up to a multiple of another, as equal shards of its rows want it."""
    name = f"({base} padded to {other})"
    return derived(name, lambda size, multiple: -(-size // multiple) * multiple, base, other)


@cache
def at_least(base: Size, other: Size) -> Size:
    """The larger of two sizes."""
    return derived(f"(max {base}, {other})", max, base, other)


@cache
def elements_of(shape: Shape) -> Size:
    """The product of a shape's sizes."""
    return reduce(_product, shape, ONE)


def number_of(one: Size, numbers: Numbers) -> int:
    """A size's number."""
    number = one.factor
    for dimension in one.dimensions:  # most have no bases: to ask each would take twice the time
        number *= dimension.number(numbers) if dimension.bases else numbers[dimension.name]
    return number


@cache
def broadcast(*shapes: Shape) -> Shape:
    """The broadcast shape of several tensors: 1 becomes the others' size.

    Raises:
        ShapeError: for shapes that do not fit.
    """
    length = max(map(len, shapes))
    padded = [(ONE,) * (length - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {item for item in sizes if item is not ONE}
        if len(wide) > 1:
            raise ShapeError(f"{' and '.join(map(str, shapes))} do not broadcast")
        result.append(wide.pop() if wide else ONE)
    return tuple(result)
