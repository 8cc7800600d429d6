"""Rows of shards that anybody may have written: what is broken is left out and counted.

The size of a row group is looked at before it is unpacked, and a row before it becomes a sample.
The organizers name the data: a file made to mislead pyarrow itself is theirs to keep out.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from training.run.status import first_line

LARGEST_GROUP = 2**28  # bytes of a row group once unpacked; 100,000 pictures are 230 MB
MOST_ROWS = 2**20  # of a shard
ROWS_AT_ONCE = 256

Sample = tuple[Any, ...]  # training data of one row
Kinds = tuple[Callable[[pa.DataType], bool], ...]


class ShardError(RuntimeError):
    """A file is no shard, or one that cannot be read safely; the message says why."""


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


class Format(Protocol):
    """A kind of training data: its columns, its rows as samples, and samples as batches.

    Attributes:
        columns: that a shard must have, with the types that each may be of.
        rest: what was drawn and is in no batch yet.
    """

    columns: dict[str, Kinds]
    rest: list[int]

    def rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Rows of these columns as Python's values, each of bounded size."""

    def check(self, row: dict[str, Any]) -> tuple[Sample | None, str]:
        """The sample of a row; None with the reason, which is empty where a filter drops it."""

    def batch(
        self, draw: Callable[[], Sample], leave_out: Callable[[str], None], size: int
    ) -> dict[str, torch.Tensor]:
        """A batch of `size` sequences, from as many samples as it takes.

        Args:
            draw: gives the next sample.
            leave_out: told why one is of no use after all.
        """


def read_samples(
    path: Path, form: Format, omitted: Omissions, first_row: int = 0
) -> Iterator[tuple[int, Sample | None]]:
    """Each row of a shard from `first_row` on: the number of the next, and the sample or None.

    Args:
        path: a file on this machine.
        form: of the data; what its filters drop is None and is not counted.
        omitted: where rows that are broken are counted; they are None, too.
        first_row: rows before it were read already.

    Raises:
        ShardError: the file cannot be read; rows that were given are good.
    """
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(file.schema_arrow, form.columns)
            start = 0
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                if group.total_byte_size > LARGEST_GROUP:
                    raise ShardError(f"it has a row group of {group.total_byte_size:,} bytes")
                if start + group.num_rows > first_row:
                    yield from _read_group(file, number, start, first_row, form, omitted)
                start += group.num_rows
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        raise ShardError(first_line(error)[:200]) from error


def _check_columns(schema: pa.Schema, columns: dict[str, Kinds]) -> None:
    for name, kinds in columns.items():
        if schema.get_all_field_indices(name) == []:
            raise ShardError(f"it has no column {name}")
        if len(schema.get_all_field_indices(name)) > 1:
            raise ShardError(f"it has two columns {name}")
        kind = schema.field(name).type
        if not any(fits(kind) for fits in kinds):
            raise ShardError(f"its column {name} holds {str(kind)[:40]}")


TEXT: Kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
NUMBER: Kinds = (pa.types.is_integer, pa.types.is_floating)
BYTES: Kinds = (pa.types.is_binary, pa.types.is_large_binary)


def _read_group(
    file: pq.ParquetFile, number: int, start: int, first_row: int, form: Format, omitted: Omissions
) -> Iterator[tuple[int, Sample | None]]:
    place = start
    batches = file.iter_batches(
        ROWS_AT_ONCE, row_groups=[number], columns=list(form.columns), use_threads=False
    )
    for batch in batches:
        skipped = max(0, min(first_row - place, batch.num_rows))
        place += skipped
        for row in form.rows(batch.slice(skipped)):
            if place >= MOST_ROWS:
                raise ShardError(f"it has more than {MOST_ROWS:,} rows")
            place += 1
            sample, reason = form.check(row)
            if reason:
                omitted.rows[reason] += 1
            yield place, sample


def as_bytes(column: pa.Array, longest: int) -> pa.Array:
    """A column of texts as bytes, cut after so many: what is no UTF-8 spoils its own row only."""
    kind = pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()
    return pc.binary_slice(column.cast(kind), 0, longest)


def decode(content: bytes, longest: int) -> str | None:
    """The text, None if it is none; the sign in which a long one was cut is left out."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        is_cut = len(content) == longest and error.start > longest - 4
        return content[: error.start].decode() if is_cut else None
