"""Sizes of the pages of a Parquet file, read from the pages' own headers.

A reader makes room for a page as its header says, whatever the file's footer says; a page of some
bytes can claim to become gigabytes. So the headers are read before the pages are.
Source: parquet-format, `PageHeader`, in Thrift's compact protocol.
"""

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow.parquet as pq

LARGEST_HEADER = 2**16  # bytes
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 0, 1, 2, 3, 7, 8
_WHOLE_NUMBERS, _STRUCT = (4, 5, 6), 12
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3  # numbers of the fields
_DEEPEST = 8


class PageError(ValueError):
    """A page's header is none."""


def unpacked_sizes(file: BinaryIO, column: pq.ColumnChunkMetaData) -> Iterator[int]:
    """Bytes that each page of a column becomes, by its own header.

    Raises:
        PageError: where a header should be there is none.
    """
    place = column.data_page_offset
    if column.has_dictionary_page:
        place = min(place, column.dictionary_page_offset)
    end = place + column.total_compressed_size
    while place < end:
        file.seek(place)
        header = _Header(file.read(LARGEST_HEADER))
        sizes = header.read_struct()
        unpacked, packed = sizes.get(_UNCOMPRESSED_SIZE, -1), sizes.get(_COMPRESSED_SIZE, -1)
        if unpacked < 0 or packed < 0:
            raise PageError("a page has no size")
        yield unpacked
        place += header.place + packed


class _Header:
    """Thrift's compact protocol, as far as it takes to read whole numbers and skip the rest."""

    def __init__(self, content: bytes) -> None:
        self._content, self.place = content, 0

    def read_struct(self, depth: int = 0) -> dict[int, int]:
        """The whole numbers of a structure by the numbers of their fields."""
        if depth > _DEEPEST:
            raise PageError("a page's header is nested too deeply")
        found, number = {}, 0
        while (first := self._byte()) != _STOP:
            kind, step = first & 15, first >> 4
            number = number + step if step else _signed(self._varint())
            if kind in _WHOLE_NUMBERS:
                found[number] = _signed(self._varint())
            else:
                self._skip(kind, depth)
        return found

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (_TRUE, _FALSE):
            return
        if kind in _WHOLE_NUMBERS:
            self._varint()
        elif kind == _STRUCT:
            self.read_struct(depth + 1)
        elif kind == _BINARY:
            length = self._varint()
            self.place += length
        elif kind in (_BYTE, _DOUBLE):
            self.place += 1 if kind == _BYTE else 8
        else:  # lists and maps: no page's header has any
            raise PageError("a page's header holds what it cannot")

    def _byte(self) -> int:
        if self.place >= len(self._content):
            raise PageError("a page's header does not end")
        self.place += 1
        return self._content[self.place - 1]

    def _varint(self) -> int:
        value = 0
        for position in range(10):
            byte = self._byte()
            value |= (byte & 127) << 7 * position
            if byte < 128:
                return value
        raise PageError("a number in a page's header does not end")


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
