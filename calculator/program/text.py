"""Pieces of a program's text: lines, and the imports that they need."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

# ruff's and black's default
WIDTH: Final = 88
INDENT: Final = "    "
STANDARD: Final = ("collections", "contextlib", "copy", "functools", "os", "sys")

# A module and a name in it; an empty name stands for the module itself.
Import = tuple[str, str]
TORCH: Final[Import] = ("torch", "")


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a program, and the imports that they need beside torch."""

    lines: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()

    def __add__(self, other: "Piece") -> "Piece":
        return Piece(self.lines + other.lines, self.imports + other.imports)


def joined(pieces: Iterable[Piece]) -> Piece:
    """All pieces, one after another."""
    return sum(pieces, Piece())


def indented(lines: Iterable[str]) -> list[str]:
    """Lines one level deeper."""
    return [INDENT + line if line else line for line in lines]


def call(head: str, arguments: Iterable[str], tail: str = "") -> list[str]:
    """A call on one line if it fits, else with one argument on each.

    >>> call("print", ["1", "2"])
    ['print(1, 2)']
    """
    words = list(arguments)
    whole = f"{head}({', '.join(words)}){tail}"
    if len(whole) <= WIDTH:
        return [whole]
    return [f"{head}(", *(f"{INDENT}{word}," for word in words), f"){tail}"]


def keywords(values: Mapping[str, str]) -> list[str]:
    """Keyword arguments from names and the text of their values."""
    return [f"{name}={value}" for name, value in values.items()]


def quoted(value: object) -> str:
    """A value as Python writes it, with double quotes around text."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(quoted, value))}]"
    return repr(value)


def import_lines(imports: Iterable[Import]) -> Iterator[str]:
    """The imports as formatters order them: the standard library, an empty line, all others."""
    found = sorted({*imports})
    standard = [item for item in found if item[0] in STANDARD]
    others = [item for item in found if item[0] not in STANDARD]
    yield from _section(standard)
    if standard:
        yield ""
    yield from _section(others)


def _section(imports: list[Import]) -> Iterator[str]:
    yield from (f"import {module}" for module, name in imports if not name)
    named = [item for item in imports if item[1]]
    for module, items in groupby(named, key=lambda item: item[0]):
        names = [name for _, name in items]
        line = f"from {module} import {', '.join(names)}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield from (f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")")
