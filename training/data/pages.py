"""The footer of a Parquet file and the headers of its pages, read before pyarrow looks at either.

A reader makes room for a page as its header says, whatever the footer says; a page of some bytes
can claim to become gigabytes. And pyarrow ends the process where a footer's row group lacks a
column: its own view of a footer is never asked.
Source: parquet-format, `FileMetaData` and `PageHeader`, in Thrift's compact protocol.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

LARGEST_FOOTER = 2**22  # bytes; of a shard of 100,000 pictures some 10,000
LARGEST_HEADER = 2**16  # bytes
_MOST_ELEMENTS = 2**16  # of a list that is kept
_STOP, _TRUE, _FALSE, _BYTE, _INT32, _INT64, _DOUBLE, _BINARY = 0, 1, 2, 3, 5, 6, 7, 8
_WHOLE_NUMBERS, _LIST, _SETS, _STRUCT = (4, 5, 6), 9, (9, 10), 12
_DEEPEST = 12

# What is kept of a structure, by the numbers of its fields: a kind, a structure, or a list of one.
_Wanted = int | Mapping[int, Any] | list[Any]
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3
_PAGE = {_UNCOMPRESSED_SIZE: _INT32, _COMPRESSED_SIZE: _INT32}
_UNPACKED, _PACKED, _DATA, _DICTIONARY = 6, 7, 9, 11
_COLUMN = {3: dict.fromkeys((_UNPACKED, _PACKED, _DATA, _DICTIONARY), _INT64)}
_GROUP = {1: [_COLUMN], 3: _INT64}
_FOOTER = {4: [_GROUP]}


class PageError(ValueError):
    """A footer or a page's header is none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's part of a row group: its first byte in the file, and its bytes."""

    place: int
    packed: int
    unpacked: int


@dataclass(frozen=True, slots=True)
class Group:
    """A row group; its columns in the order of the schema's leaves."""

    rows: int
    columns: list[Column]


def read_groups(file: BinaryIO) -> list[Group]:
    """The row groups of a file, by its footer.

    Raises:
        PageError: there is no footer, or one that is too large or broken.
    """
    size = file.seek(0, 2)
    file.seek(-min(size, 8), 2)
    length = int.from_bytes(file.read(4), "little")
    if length > min(LARGEST_FOOTER, size - 8):
        raise PageError(f"its footer has {length:,} bytes")
    file.seek(-8 - length, 2)
    footer = _Thrift(file.read(length)).read_struct(_FOOTER)
    return [_group(found) for found in footer.get(4, [])]


def _group(found: dict[int, Any]) -> Group:
    columns = [_column(column.get(3, {})) for column in found.get(1, [])]
    return Group(_amount(found, 3), columns)


def _column(found: dict[int, Any]) -> Column:
    place = _amount(found, _DATA)
    if found.get(_DICTIONARY, 0) > 0:
        place = min(place, found[_DICTIONARY])
    return Column(place, _amount(found, _PACKED), _amount(found, _UNPACKED))


def unpacked_sizes(file: BinaryIO, column: Column) -> Iterator[int]:
    """Bytes that each page of a column becomes, by its own header.

    Raises:
        PageError: where a header should be there is none.
    """
    place = column.place
    while place < column.place + column.packed:
        file.seek(place)
        header = _Thrift(file.read(LARGEST_HEADER))
        sizes = header.read_struct(_PAGE)
        yield _amount(sizes, _UNCOMPRESSED_SIZE)
        place += header.place + _amount(sizes, _COMPRESSED_SIZE)


def _amount(found: dict[int, Any], field: int) -> int:
    value: int = found.get(field, -1)
    if value < 0:
        raise PageError("a footer or a page lacks a size")
    return value


class _Thrift:
    """Thrift's compact protocol, as far as it takes to read what is wanted and skip the rest."""

    def __init__(self, content: bytes) -> None:
        self._content, self.place = content, 0

    def read_struct(self, wanted: Mapping[int, Any], depth: int = 0) -> dict[int, Any]:
        """The wanted fields of a structure by their numbers.

        Raises:
            PageError: it is broken, or has a field twice or of another kind.
        """
        found: dict[int, Any] = {}
        number = 0
        while (first := self._byte()) != _STOP:
            kind, step = first & 15, first >> 4
            number = number + step if step else _signed(self._varint())
            if number not in wanted:
                self._skip(kind, depth)
            elif number in found:
                raise PageError("a header has a field twice")
            else:
                found[number] = self._read(kind, wanted[number], depth)
        return found

    def _read(self, kind: int, wanted: _Wanted, depth: int) -> Any:
        _check(depth)
        if isinstance(wanted, Mapping) and kind == _STRUCT:
            return self.read_struct(wanted, depth + 1)
        if isinstance(wanted, list) and kind == _LIST:
            element, count = self._begin_list()
            if count > _MOST_ELEMENTS:
                raise PageError(f"a header has a list of {count:,}")
            return [self._read(element, wanted[0], depth + 1) for _ in range(count)]
        if kind == wanted:
            return _signed(self._varint())
        raise PageError("a header has a field of another kind")

    def _skip(self, kind: int, depth: int) -> None:
        _check(depth)
        if kind in _WHOLE_NUMBERS:
            self._varint()
        elif kind == _STRUCT:
            self.read_struct({}, depth + 1)
        elif kind == _BINARY:
            length = self._varint()
            self.place += length
        elif kind in (_BYTE, _DOUBLE):
            self.place += 1 if kind == _BYTE else 8
        elif kind in _SETS:
            element, count = self._begin_list()
            for _ in range(count):
                # Outside a structure, true and false take a byte.
                self._skip(_BYTE if element in (_TRUE, _FALSE) else element, depth + 1)
        elif kind not in (_TRUE, _FALSE):  # maps: neither a footer nor a header has any
            raise PageError("a header holds what it cannot")

    def _begin_list(self) -> tuple[int, int]:
        """Kind and number of a list's elements."""
        first = self._byte()
        count = first >> 4 if first >> 4 < 15 else self._varint()
        if count > len(self._content):  # each element takes a byte
            raise PageError("a list in a header does not end")
        return first & 15, count

    def _byte(self) -> int:
        if self.place >= len(self._content):
            raise PageError("a header does not end")
        self.place += 1
        return self._content[self.place - 1]

    def _varint(self) -> int:
        value = 0
        for position in range(10):
            byte = self._byte()
            value |= (byte & 127) << 7 * position
            if byte < 128:
                return value
        raise PageError("a number in a header does not end")


def _check(depth: int) -> None:
    if depth > _DEEPEST:
        raise PageError("a header is nested too deeply")


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
