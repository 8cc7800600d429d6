"""Encoded pictures on disk: Parquet files compressed with Brotli, which `datasets` streams.

A row is a caption, the picture's codes as little-endian int16 bytes, and what the filters look at.
How many rows of the source a shard comes from and what their pictures weigh as JPEG is in the
file's own metadata, so that an interrupted encoding goes on and its sums are right.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from calculator.errors import InputError
from training.run.atomic import replacing
from training.run.recipes import DataSettings

COLUMNS = pa.schema(
    [
        ("caption", pa.string()),
        ("code", pa.binary()),
        ("NSFW", pa.string()),
        ("original_width", pa.int32()),
        ("original_height", pa.int32()),
    ]
)
_METADATA_KEY = b"training"


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """Origin of a shard.

    Attributes:
        first_row: first row of the source.
        source_rows: rows read, those filtered out included.
        rows: rows kept.
        jpeg_bytes: what the kept rows' pictures weigh as JPEG files.
        codes: VQ-GAN they were encoded with.
        pixels: side of the pictures it was shown.
        codebook_size: codes it has.
    """

    first_row: int
    source_rows: int
    rows: int
    jpeg_bytes: int
    codes: str
    pixels: int
    codebook_size: int


def is_kept(row: dict[str, Any], settings: DataSettings) -> bool:
    """True if a picture is used for training.

    Its caption must be long enough, its NSFW label allowed, its sides known and positive, and the
    longer at most `largest_aspect_ratio` times the shorter. Source: the 2021 run's filters.
    """
    width, height = row["original_width"] or 0, row["original_height"] or 0
    return (
        len(row["caption"] or "") >= settings.shortest_caption
        and row["NSFW"] in settings.allowed_labels
        and min(width, height) > 0
        and max(width, height) <= settings.largest_aspect_ratio * min(width, height)
    )


def pack_codes(codes: torch.Tensor) -> bytes:
    """One picture's codes, int64 [I] below 2^15, as int16 bytes."""
    return codes.numpy().astype("<i2").tobytes()


def unpack_codes(packed: bytes) -> np.ndarray:
    """The inverse of `pack_codes`: int64 [I]."""
    return np.frombuffer(packed, dtype="<i2").astype(np.int64)


def write_shard(path: Path, rows: list[dict[str, Any]], info: ShardInfo) -> None:
    """Write a shard as a whole or not at all."""
    metadata = {_METADATA_KEY: json.dumps(asdict(info)).encode()}
    table = pa.Table.from_pylist(rows, schema=COLUMNS.with_metadata(metadata))
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="brotli", use_dictionary=["NSFW"])


def read_info(path: Path) -> ShardInfo:
    """Origin of a shard; raises InputError where the file is not a shard of ours."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return ShardInfo(**json.loads(metadata[_METADATA_KEY]))
    except (KeyError, OSError, pa.ArrowInvalid, TypeError, ValueError) as error:
        raise InputError("shard", path, "must be made by `python -m training encode`") from error


def shard_path(folder: Path, number: int) -> Path:
    """The file of shard `number`."""
    return folder / f"codes-{number:05d}.parquet"


def list_shards(folder: Path) -> list[Path]:
    """The shards in a folder, in order."""
    return sorted(folder.glob("codes-*.parquet"))
