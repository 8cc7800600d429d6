"""Rows of shards that anybody may have written: what is broken is left out and counted.

Nothing in a file may end a volunteer or take more memory than it has: sizes are looked at before
anything is unpacked, and a row is looked at before it becomes a sample.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from training.data.pages import PageError, unpacked_sizes
from training.data.shards import COLUMNS, is_kept, unpack_codes
from training.run.recipes import DataSettings, ModelSettings

LARGEST_GROUP = 2**28  # bytes of a row group, packed or unpacked; 100,000 pictures are 230 MB
LARGEST_FOOTER = 2**24  # bytes
MOST_ROWS = 2**20  # of a shard
LONGEST_CAPTION = 4096  # bytes; what is longer is cut
ROWS_AT_ONCE = 256


class ShardError(RuntimeError):
    """A file is no shard, or one that cannot be read safely; the message says why."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Training data of one picture: its caption, and its codes as packed by `shards.pack_codes`."""

    caption: str
    code: bytes


@dataclass
class Omissions:
    """Data left out, by reason."""

    rows: Counter[str] = field(default_factory=Counter)
    shards: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        parts = [
            f"{sum(counts.values()):,} {word} ({counts.most_common(1)[0][0]})"
            for word, counts in (("rows", self.rows), ("shards", self.shards))
            if counts
        ]
        return ", ".join(parts) or "nothing"

    @property
    def commonest(self) -> str:
        """The reason that was met most often; empty where there was none."""
        both = self.rows + self.shards
        return both.most_common(1)[0][0] if both else ""


def read_samples(
    path: Path, data: DataSettings, model: ModelSettings, omitted: Omissions, first_row: int = 0
) -> Iterator[tuple[int, Sample | None]]:
    """Each row of a shard from `first_row` on: the number of the next, and the sample or None.

    Args:
        path: a file on this machine.
        data: the filters; what they leave out is None and is not counted.
        model: the shape that the codes must have; rows that do not are None and counted.
        omitted: where they are counted.
        first_row: rows before it were read already.

    Raises:
        ShardError: the file cannot be read; rows that were given are good.
    """
    try:
        with path.open("rb") as plain, pq.ParquetFile(plain) as file:
            _check_footer(plain)
            _check_columns(file.schema_arrow)
            start = 0
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                if start + group.num_rows > first_row:
                    _check_group(plain, group)
                    yield from _read_group(file, number, start, first_row, data, model, omitted)
                start += group.num_rows
    except (pa.ArrowException, PageError, OSError, MemoryError, UnicodeDecodeError) as error:
        raise ShardError(_first_line(error)) from error


def _check_footer(file: Any) -> None:
    file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    if length > LARGEST_FOOTER:
        raise ShardError(f"its footer has {length:,} bytes")


def _check_columns(schema: pa.Schema) -> None:
    for wanted in COLUMNS:
        if schema.get_all_field_indices(wanted.name) == []:
            raise ShardError(f"it has no column {wanted.name}")
        if len(schema.get_all_field_indices(wanted.name)) > 1:
            raise ShardError(f"it has two columns {wanted.name}")
        kind = schema.field(wanted.name).type
        if not any(fits(kind) for fits in _KINDS[wanted.name]):
            raise ShardError(f"its column {wanted.name} holds {str(kind)[:40]}")


_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
_NUMBER = (pa.types.is_integer, pa.types.is_floating)
_KINDS: dict[str, tuple[Any, ...]] = {
    "caption": _TEXT,
    "code": (pa.types.is_binary, pa.types.is_large_binary),
    "NSFW": _TEXT,
    "original_width": _NUMBER,
    "original_height": _NUMBER,
}


def _check_group(file: Any, group: pq.RowGroupMetaData) -> None:
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema not in COLUMNS.names:
            continue  # it is not read
        if max(column.total_compressed_size, column.total_uncompressed_size) > LARGEST_GROUP:
            size = max(column.total_compressed_size, column.total_uncompressed_size)
            raise ShardError(f"its column {column.path_in_schema} unpacks to {size:,} bytes")
        if sum(unpacked_sizes(file, column)) > LARGEST_GROUP:
            raise ShardError(f"pages of its column {column.path_in_schema} unpack to too much")


def _read_group(
    file: pq.ParquetFile,
    number: int,
    start: int,
    first_row: int,
    data: DataSettings,
    model: ModelSettings,
    omitted: Omissions,
) -> Iterator[tuple[int, Sample | None]]:
    place = start
    batches = file.iter_batches(
        ROWS_AT_ONCE, row_groups=[number], columns=COLUMNS.names, use_threads=False
    )
    for batch in batches:
        skipped = max(0, min(first_row - place, batch.num_rows))
        place += skipped
        for row in _rows(batch.slice(skipped), model):
            if place >= MOST_ROWS:
                raise ShardError(f"it has more than {MOST_ROWS:,} rows")
            place += 1
            yield place, _check_row(row, data, model, omitted)


def _rows(batch: pa.RecordBatch, model: ModelSettings) -> Iterator[dict[str, Any]]:
    """Rows of a batch as Python's values; codes of another length stay outside, as their length."""
    columns = {name: batch.column(name) for name in COLUMNS.names}
    for name in ("caption", "NSFW"):  # as bytes: what is no UTF-8 spoils its own row only
        kind = pa.large_binary() if pa.types.is_large_string(columns[name].type) else pa.binary()
        columns[name] = pc.binary_slice(columns[name].cast(kind), 0, LONGEST_CAPTION)
    lengths = pc.binary_length(columns["code"])
    fits = pc.equal(lengths, 2 * model.image_side**2)
    columns["code"] = pc.if_else(fits, columns["code"], None)
    names = [*columns, "length"]
    values = [column.to_pylist() for column in (*columns.values(), lengths)]
    for row in zip(*values, strict=True):
        yield dict(zip(names, row, strict=True))


def _check_row(
    row: dict[str, Any], data: DataSettings, model: ModelSettings, omitted: Omissions
) -> Sample | None:
    reason = None
    for name in ("caption", "NSFW"):
        if row[name] is not None:
            row[name], is_whole = _decode(row[name])
            reason = reason if is_whole else f"{name} is not UTF-8"
    if reason is None:
        if not is_kept(row, data):
            return None
        reason = _fault(row, model)
    if reason is not None:
        omitted.rows[reason] += 1
        return None
    return Sample(row["caption"], row["code"])


def _decode(content: bytes) -> tuple[str, bool]:
    """The text, and whether it is one; the sign in which a long one was cut is left out."""
    try:
        return content.decode(), True
    except UnicodeDecodeError as error:
        is_cut = len(content) == LONGEST_CAPTION and error.start > LONGEST_CAPTION - 4
        return (content[: error.start].decode(), True) if is_cut else ("", False)


def _fault(row: dict[str, Any], model: ModelSettings) -> str | None:
    if row["length"] is None:
        return "there are no codes"
    if row["code"] is None:
        count = model.image_side**2
        return f"must have {count} codes a picture, but has {row['length']:,} bytes"
    codes = unpack_codes(row["code"])
    if int(np.min(codes)) < 0 or int(np.max(codes)) >= model.image_vocabulary_size:
        return f"must have codes from 0 to {model.image_vocabulary_size - 1}"
    return None


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
