import csv
import gc
import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from calculator.errors import InputError
from training.data import encode, streaming
from training.data.shards import is_kept, list_shards, pack_codes, read_info, unpack_codes
from training.model.captions import HubTokenizer, WordTokenizer
from training.pictures.codes import CodeModel
from training.run.recipes import RECIPES, Recipe
from training.shapes import samples
from training.shapes.samples import draw_sample

RECIPE = RECIPES["tiny"]
COUNT, SHARD_ROWS = 100, 32


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, vq_gan: CodeModel) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    encode.encode("shapes", folder, RECIPE.data, vq_gan, COUNT, SHARD_ROWS)
    return folder


def with_buffer(size: int, batch_size: int = 5) -> Recipe:
    return replace(
        RECIPE,
        data=replace(RECIPE.data, shuffle_buffer=size),
        swarm=replace(RECIPE.swarm, micro_batch_size=batch_size),
    )


def read(stream: streaming.SampleStream, batches: int) -> list[tuple[Any, ...]]:
    """The samples of some batches, in order."""
    samples = []
    for _ in range(batches):
        batch = next(stream)
        for text, picture in zip(batch["text_ids"], batch["image_codes"], strict=True):
            samples.append((*text.tolist(), *picture.tolist()))
    return samples


# Filters


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"caption": "ab"}, False),
        ({"caption": "abc"}, True),
        ({"caption": None}, False),
        ({"NSFW": "UNSURE"}, False),
        ({"NSFW": None}, False),
        ({"original_width": 0}, False),
        ({"original_height": None}, False),
        ({"original_width": 200}, True),
        ({"original_width": 201}, False),
        ({"original_height": 201}, False),
    ],
)
def test_pictures_are_filtered_as_in_the_2021_run(change: dict[str, Any], kept: bool) -> None:
    row = {"caption": "a cat", "NSFW": "UNLIKELY", "original_width": 100, "original_height": 100}
    assert is_kept(row | change, RECIPES["paper"].data) is kept


# Encoding


def test_shards_hold_the_codes_and_captions_of_the_source(shards: Path, vq_gan: CodeModel) -> None:
    files = [pq.ParquetFile(path) for path in list_shards(shards)]
    assert {file.metadata.row_group(0).column(1).compression for file in files} == {"BROTLI"}
    rows = [row for file in files for row in file.read().to_pylist()]
    assert [row["caption"] for row in rows] == [draw_sample(i).caption for i in range(COUNT)]
    expected = vq_gan.encode([draw_sample(i).image for i in range(COUNT)], 32)
    for row, picture in zip(rows, expected, strict=True):
        assert len(row["code"]) == 2 * 64  # int16
        assert unpack_codes(row["code"]).tolist() == picture.tolist()


def test_encoding_goes_on_where_it_stopped(
    tmp_path: Path, shards: Path, vq_gan: CodeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode.encode("shapes", tmp_path, RECIPE.data, vq_gan, 2 * SHARD_ROWS, SHARD_ROWS)
    made = {path: path.stat().st_mtime_ns for path in list_shards(tmp_path)}
    read_source = Mock(wraps=encode.read_source)
    monkeypatch.setattr(encode, "read_source", read_source)
    report = encode.encode("shapes", tmp_path, RECIPE.data, vq_gan, COUNT, SHARD_ROWS)
    assert [call.args[1] for call in read_source.call_args_list] == [2 * SHARD_ROWS]
    assert {path: path.stat().st_mtime_ns for path in made} == made
    for one, other in zip(list_shards(tmp_path), list_shards(shards), strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert report.rows == COUNT


def test_a_short_last_shard_is_made_again_when_more_comes(
    tmp_path: Path, vq_gan: CodeModel
) -> None:
    for count in (40, 50):
        report = encode.encode("shapes", tmp_path, RECIPE.data, vq_gan, count, SHARD_ROWS)
        assert report.source_rows == report.rows == count
        assert len(list_shards(tmp_path)) == 2


def test_the_saving_is_the_jpegs_over_the_shards(shards: Path) -> None:
    jpeg_bytes = 0
    for index in range(COUNT):
        buffer = io.BytesIO()
        draw_sample(index).image.save(buffer, "JPEG", quality=75)
        jpeg_bytes += buffer.tell()
    report = encode.summarise(shards)
    assert report.jpeg_bytes == jpeg_bytes
    assert report.shard_bytes == sum(path.stat().st_size for path in list_shards(shards))
    assert report.saving == pytest.approx(jpeg_bytes / report.shard_bytes)
    assert f"{report.saving:.1f} times less traffic" in str(report)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of `datasets`,
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # which leaves metadata.csv open
def test_pictures_in_a_folder_are_encoded_and_filtered(
    tmp_path: Path, vq_gan: CodeModel, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    sizes = {"square.jpg": (64, 64), "wide.jpg": (130, 60), "tall.png": (40, 80)}
    captions = {"square.jpg": "a red circle", "wide.jpg": "a blue square", "tall.png": "ab"}
    with (pictures / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "caption"])
        for name, size in sizes.items():
            Image.new("RGB", size, (200, 30, 30)).save(pictures / name)
            writer.writerow([name, captions[name]])
    output = tmp_path / "shards"
    encode.main([str(pictures), "--output", str(output)])
    assert "1 pictures kept of 3" in capsys.readouterr().out
    (path,) = list_shards(output)
    (row,) = pq.read_table(path).to_pylist()
    assert (row["caption"], row["original_width"], row["NSFW"]) == ("a red circle", 64, "UNLIKELY")
    # The weight of a picture that is a JPEG is the file's own.
    assert read_info(path).jpeg_bytes == (pictures / "square.jpg").stat().st_size
    gc.collect()  # here, not in a later test: the library's open file


def test_folders_made_otherwise_and_endless_sources_are_refused(
    shards: Path, vq_gan: CodeModel
) -> None:
    other = replace(RECIPE.data, image_pixels=64)
    with pytest.raises(InputError, match="was encoded with pixels 32, not 64"):
        encode.encode("shapes", shards, other, vq_gan, COUNT, SHARD_ROWS)
    with pytest.raises(InputError, match="other than 16 rows"):
        encode.encode("shapes", shards, RECIPE.data, vq_gan, COUNT, 16)
    with pytest.raises(InputError, match="count"):  # shapes are endless
        encode.encode("shapes", shards, RECIPE.data, vq_gan)


# Streaming


def test_an_epoch_shows_every_picture_once_in_an_order_of_its_own(shards: Path) -> None:
    batches = COUNT // 5
    everything = Counter(read(streaming.stream(with_buffer(1), b"other", shards), batches))
    stream = streaming.stream(with_buffer(30), b"peer", shards)
    first, second = read(stream, batches), read(stream, batches)
    assert stream.epoch == 1
    assert Counter(first) == Counter(second) == everything
    assert first != second
    assert first != read(streaming.stream(with_buffer(30), b"another", shards), batches)


def test_a_peers_order_is_the_same_in_every_process(shards: Path) -> None:
    assert streaming.peer_seed(b"peer") == 0x2FFC1D06  # printf peer | sha256sum
    streams = [streaming.stream(RECIPE, b"peer", shards, 5) for _ in range(2)]
    for _ in range(3):
        first, second = (next(stream)["image_codes"].tolist() for stream in streams)
        assert first == second


@pytest.mark.parametrize("batches", [0, 3, 20, 27])  # 20 batches are an epoch
def test_a_resumed_stream_equals_an_uninterrupted_one(shards: Path, batches: int) -> None:
    recipe = with_buffer(30)
    stream = streaming.stream(recipe, b"peer", shards)
    read(stream, batches)
    state = stream.state_dict()
    expected = read(stream, 30)
    resumed = streaming.stream(recipe, b"peer", shards)
    resumed.load_state_dict(state)
    assert read(resumed, 30) == expected


def test_the_shapes_that_come_with_us_are_as_they_are_drawn_and_encoded(vq_gan: CodeModel) -> None:
    paths = list_shards(streaming.prepare(RECIPE))
    assert sum(read_info(path).rows for path in paths) == 20_480
    for path in paths:
        rows, first = pq.read_table(path).slice(length=32).to_pylist(), read_info(path).first_row
        drawn = [samples.draw_sample(first + place, 32) for place in range(32)]
        assert [row["caption"] for row in rows] == [sample.caption for sample in drawn]
        encoded = vq_gan.encode([sample.image for sample in drawn], 32)
        assert [row["code"] for row in rows] == [pack_codes(picture) for picture in encoded]


@pytest.mark.parametrize(
    ("part", "change", "rule"),
    [
        ("model", {"image_side": 4}, "must have 16 codes a picture"),
        ("model", {"image_vocabulary_size": 4}, "must have codes from 0 to 3"),
        ("data", {"shortest_caption": 1000}, "nothing that the filters keep"),
    ],
)
def test_data_of_another_model_or_without_a_picture_that_is_kept_are_refused(
    shards: Path, part: str, change: dict[str, int], rule: str
) -> None:
    recipe = replace(RECIPE, **{part: replace(getattr(RECIPE, part), **change)})
    with pytest.raises(InputError, match=rule):
        next(streaming.stream(recipe, b"peer", shards))


def test_sources_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recipe paper names none"):
        streaming.stream(RECIPES["paper"], b"peer")
    with pytest.raises(InputError, match="must be a folder of Parquet files"):
        streaming.stream(RECIPE, b"peer", tmp_path)
    other = replace(RECIPE, data=replace(RECIPE.data, image_pixels=64))
    with pytest.raises(InputError, match="encode them with"):
        streaming.stream(other, b"peer")


# Captions


def test_words_become_ids_and_the_rest_is_padding() -> None:
    ids = WordTokenizer(6)(["a red circle", "a red circle above"])
    assert ids.shape == (2, 6)
    assert ids[0, :3].tolist() == ids[1, :3].tolist()
    assert ids[0, 3:].tolist() == [0, 0, 0]
    assert 0 not in ids[1, :4]


@pytest.mark.parametrize(
    ("special", "length", "captions", "ids"),
    [
        (
            {"unk_token": "[X]"},
            3,
            ["a cat", "a a a cat", "dog"],
            [[2, 3, 0], [2, 2, 2], [1, 0, 0]],
        ),
        # As T5's does where it is not told otherwise; the run of 2021 told it otherwise.
        ({"eos_token": "[X]"}, 4, ["a cat", "a a a a cat"], [[2, 3, 0, 0], [2, 2, 2, 2]]),
    ],
)
def test_hub_tokenizers_are_cut_and_padded_with_zeros_and_add_no_end(
    tmp_path: Path, special: dict[str, str], length: int, captions: list[str], ids: list[list[int]]
) -> None:
    words = WordLevel({"[X]": 1, "a": 2, "cat": 3}, unk_token=special.get("unk_token"))
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = Whitespace()
    if "eos_token" in special:
        end = TemplateProcessing(single="$0 [X]", special_tokens=[("[X]", 1)])
        tokenizer.post_processor = end
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(tmp_path)
    hub = HubTokenizer(str(tmp_path), length, vocabulary_size=10)
    assert hub(captions).tolist() == ids
    with pytest.raises(InputError, match="the model knows 2"):
        HubTokenizer(str(tmp_path), length, vocabulary_size=2)
