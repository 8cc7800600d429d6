"""Shards that somebody else wrote, wrongly or with intent."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from training.data import reading, streaming
from training.data.pictures import LONGEST_CAPTION, Pictures
from training.data.reading import Omissions, ShardError, read_samples
from training.data.shards import COLUMNS
from training.run.recipes import TINY

CODES = 2 * TINY.model.image_side**2  # bytes
FORMAT = Pictures(TINY.data, TINY.model)
GOOD: dict[str, Any] = {
    "caption": "a red circle",
    "code": bytes(CODES),
    "NSFW": "UNLIKELY",
    "original_width": 32,
    "original_height": 32,
}
RECIPE = replace(
    TINY, data=replace(TINY.data, shuffle_buffer=4), swarm=replace(TINY.swarm, micro_batch_size=3)
)


def write(folder: Path, rows: list[dict[str, Any]], number: int = 0, schema: Any = COLUMNS) -> Path:
    path = folder / f"codes-{number:05d}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="brotli")
    return path


def read(path: Path) -> tuple[int, Omissions]:
    """Number of samples in a shard, and what was left out of it."""
    omitted = Omissions()
    rows = read_samples(path, FORMAT, omitted)
    return sum(sample is not None for _, sample in rows), omitted


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"code": None}, "there are no codes"),
        ({"code": b""}, "but has 0 bytes"),
        ({"code": bytes(CODES - 2)}, "but has 126 bytes"),
        ({"code": bytes(CODES + 1)}, "but has 129 bytes"),  # half a code
        ({"code": b"\xff" * CODES}, "must have codes from 0 to 127"),
        ({"code": b"\x80\x00" * (CODES // 2)}, "must have codes from 0 to 127"),
        ({"caption": "a purple circle"}, "unknown word 'purple'"),
        ({"caption": "a " * 5_000_000}, "must have at most 10 words"),
        ({"caption": "a " * 11}, "must have at most 10 words"),
    ],
)
def test_a_broken_row_is_left_out_and_counted(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    write(tmp_path, [GOOD, GOOD | change, GOOD])
    said: list[str] = []
    stream = streaming.stream(RECIPE, b"peer", tmp_path, say=said.append)
    for _ in range(4):
        assert next(stream)["image_codes"].sum() == 0
    assert reason in stream.omitted.commonest
    assert any(reason in line for line in said)


def test_a_caption_that_is_no_text_spoils_its_own_row_only(tmp_path: Path) -> None:
    binary = pa.schema([pa.field("caption", pa.binary()), *list(COLUMNS)[1:]])
    rows = [GOOD | {"caption": b"a red circle"}, GOOD | {"caption": b"\xff\xfe\xfd"}]
    table = pa.Table.from_pylist(rows, schema=binary)
    column = pa.Array.from_buffers(pa.string(), 2, table["caption"].chunk(0).buffers())
    path = tmp_path / "codes-00000.parquet"
    pq.write_table(table.set_column(0, "caption", column), path)
    count, omitted = read(path)
    assert (count, dict(omitted.rows)) == (1, {"caption is not UTF-8": 1})


def test_a_long_caption_is_cut_where_a_sign_ends(tmp_path: Path) -> None:
    rows = [GOOD | {"caption": (9 - k) * "a" + "é" * 1_000_000} for k in range(2)]
    samples = read_samples(write(tmp_path, rows), FORMAT, Omissions())
    for _, sample in samples:
        caption = sample[0]
        assert set(caption) == {"a", "é"}
        assert 4000 < len(caption.encode()) <= LONGEST_CAPTION


@pytest.mark.parametrize(
    ("column", "kind", "value", "reason"),
    [
        ("code", pa.string(), "x", "its column code holds"),
        ("caption", pa.list_(pa.string()), ["x"], "its column caption holds list"),
        ("original_width", pa.string(), "32", "its column original_width holds string"),
    ],
)
def test_a_file_of_other_columns_is_left_out(
    tmp_path: Path, column: str, kind: pa.DataType, value: Any, reason: str
) -> None:
    schema = COLUMNS.set(COLUMNS.get_field_index(column), pa.field(column, kind))
    with pytest.raises(ShardError, match=reason):
        read(write(tmp_path, [GOOD | {column: value}], schema=schema))
    path = write(tmp_path, [GOOD], schema=COLUMNS.remove(COLUMNS.get_field_index(column)))
    with pytest.raises(ShardError, match=f"it has no column {column}"):
        read(path)


def test_a_broken_shard_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, [GOOD] * 5, 0)
    (tmp_path / "codes-00001.parquet").write_bytes(b"PAR1 is not enough")
    half = write(tmp_path, [GOOD] * 50, 2)
    half.write_bytes(half.read_bytes()[:-40])
    stream = streaming.stream(RECIPE, b"peer", tmp_path)
    for _ in range(6):
        next(stream)
    assert stream.epoch >= 2
    assert sum(stream.omitted.shards.values()) >= 4  # both, twice


def test_a_shard_that_unpacks_to_much_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, [GOOD | {"caption": "a " * 10_000}])
    assert path.stat().st_size < 4000
    monkeypatch.setattr(reading, "LARGEST_GROUP", 4000)
    with pytest.raises(ShardError, match=r"it has a row group of [\d,]+ bytes"):
        read(path)


def test_a_shard_of_endless_rows_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 1000)
    path = write(tmp_path, [GOOD] * 1500)
    samples = read_samples(path, FORMAT, Omissions())
    assert [next(samples)[0] for _ in range(1000)] == list(range(1, 1001))
    with pytest.raises(ShardError, match="more than 1,000 rows"):
        next(samples)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data())
def test_a_shard_with_other_bytes_is_read_or_left_out(tmp_path: Path, data: st.DataObject) -> None:
    good = tmp_path / "codes-00000.parquet"
    if not good.exists():
        write(tmp_path, [GOOD | {"caption": "a red circle" * (i % 3)} for i in range(300)])
    content = bytearray(good.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, footer - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.none() | st.integers(0, len(content)))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(content[:cut])
    with contextlib.suppress(ShardError):
        read(broken)
