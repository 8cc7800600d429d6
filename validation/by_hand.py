"""Keys and values repeated for each head by the program itself, before a kernel is called.

A script that wants the efficient kernel where heads share keys and values can repeat them first.
No option of the calculator asks for it; these types answer for such steps of other people.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from typing import Final

from calculator.architecture import Architecture
from calculator.layers.grouped import GroupedAttention
from calculator.models.decoder import Decoder
from calculator.models.registry import TYPES
from calculator.plan import Attention

SUFFIX: Final = "-by-hand"


class Repeating(GroupedAttention):
    """Attention that repeats shared keys and values before every kernel."""

    def repeats(self, mask: object) -> bool:
        """True wherever heads share keys."""
        return self.heads.are_grouped


@cache
def repeating(kind: type[Decoder]) -> type[Decoder]:
    """A type like another one whose programs repeat keys and values by hand."""

    class ByHand(kind):  # type: ignore[misc, valid-type]
        lora_targets = kind.lora_targets  # which no type inherits

        @classmethod
        def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
            made = super().attention(architecture, kind)
            return Repeating(*(getattr(made, item.name) for item in fields(made)))

        @classmethod
        def kernels_of(
            cls, architecture: Architecture, narrow: bool, length: int
        ) -> Sequence[Attention]:
            return list(cls.kernels)

    return ByHand


@contextmanager
def repeated_by_hand(architecture: Architecture) -> Iterator[Architecture]:
    """The same shape, of a type that exists meanwhile."""
    name, kind = architecture.family + SUFFIX, TYPES[architecture.family]
    assert issubclass(kind, Decoder)
    TYPES[name] = repeating(kind)
    try:
        yield replace(architecture, name=architecture.name + SUFFIX, family=name)
    finally:
        del TYPES[name]
