"""TOML tables as dataclasses: a key is a field, and its value must be of the field's type."""

import math
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from calculator.errors import InputError, unknown_name

NOTHING = "none"  # TOML has no null


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with what differs; a table within a table is merged likewise.

    A model's configuration that says its `model_type` is whole, and replaces the base's.

    >>> merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}})
    {'a': {'b': 4, 'c': 2}, 'd': 3}
    """
    merged = dict(base)
    for key, value in changes.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and "model_type" not in value:
            value = merge(before, value)
        merged[key] = value
    return merged


def read(kind: Any, table: object, place: str = "") -> Any:
    """The dataclass that a table describes.

    Args:
        place: in the file, for messages.

    Raises:
        InputError: a key that no field has, a field without a value, or a value of another type.
    """
    if not isinstance(table, dict):
        raise InputError(place, table, "must be a table")
    known = _types_of(kind)
    for key in table:
        if key not in known:
            raise unknown_name(_join(place, key), key, known)
    for field in fields(kind):
        is_required = field.default is MISSING and field.default_factory is MISSING
        if is_required and field.name not in table:
            raise InputError(_join(place, field.name), "", "must be given")
    values = {key: read_value(known[key], one, _join(place, key)) for key, one in table.items()}
    return kind(**values)


def write(table: dict[str, Any], place: str) -> list[str]:
    """The lines of a table that `read` has accepted, which TOML reads back."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = ["", f"[{place}]", *(f"{key} = {_write(one)}" for key, one in plain.items())]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += write(value, f"{place}.{key}")
    return lines


def quote(text: str) -> str:
    """A text as TOML writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write, value))}]"
    if isinstance(value, str):
        return quote(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def read_value(kind: Any, value: Any, place: str) -> Any:
    """A value of a type; raises what `read` raises."""
    if isinstance(kind, UnionType):
        if value is None or value == NOTHING:
            return None
        kind = _choose([one for one in get_args(kind) if one is not type(None)], value)
    if is_dataclass(kind):
        return read(kind, value, place)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise InputError(place, value, "must be a table")
        one_kind = get_args(kind)[1]
        if one_kind is Any:
            return value
        return {key: read_value(one_kind, one, _join(place, key)) for key, one in value.items()}
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), value, place)
    if issubclass(kind, Enum):
        names = [member.value for member in kind]
        if value not in names:
            raise unknown_name(place, value, names)
        return kind(value)
    return _read_plain(kind, value, place)


def _choose(kinds: list[Any], value: Any) -> Any:
    """The kind that a value is of; of several tables the one that knows most of its keys."""
    if not isinstance(value, dict):
        return next((kind for kind in kinds if type(value) is kind), kinds[0])
    tables = [kind for kind in kinds if is_dataclass(kind) or get_origin(kind) is dict]
    if len(tables) < 2:
        return (tables or kinds)[0]
    return max(tables, key=lambda kind: len(value.keys() & _types_of(kind).keys()))


@cache  # they are evaluated from text
def _types_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_tuple(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise InputError(place, value, "must be a list")
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise InputError(place, value, f"must have {len(kinds)} values")
    return tuple(read_value(kind, one, place) for kind, one in zip(kinds, value, strict=True))


def _read_plain(kind: type, value: Any, place: str) -> Any:
    """A value that is a text, a number or a truth value."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise InputError(place, value, f"must be {_WORDS[kind]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(place, value, "must be a finite number")
    return value


_WORDS = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
