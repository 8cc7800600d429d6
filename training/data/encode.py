"""Pictures and captions to streamable codes: `python -m training encode SOURCE --output FOLDER`.

SOURCE is `shapes`, a folder that `datasets` loads (for example pictures and a `metadata.csv` with
the columns file_name and caption), or a data set on the Hugging Face Hub.
"""

import argparse
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image
from tqdm import tqdm

from calculator.errors import InputError
from training.data.shards import (
    ShardInfo,
    is_kept,
    list_shards,
    pack_codes,
    read_info,
    shard_path,
    write_shard,
)
from training.pictures.codes import CodeModel
from training.run.recipes import RECIPES, DataSettings, find_recipe
from training.run.status import first_line
from training.shapes.samples import draw_sample

SAFE_LABEL = "UNLIKELY"
_JPEG_QUALITY = 75  # Pillow's and libjpeg's default
_BATCH = 64


@dataclass(frozen=True, slots=True)
class EncodingReport:
    """Contents of an encoded folder, including earlier shards.

    Attributes:
        source_rows: pictures read.
        rows: pictures kept by the filters.
        jpeg_bytes: what the kept pictures weigh as JPEG files.
        shard_bytes: what their codes and captions weigh.
    """

    source_rows: int
    rows: int
    jpeg_bytes: int
    shard_bytes: int

    @property
    def saving(self) -> float:
        """Bytes of JPEG for each byte of codes and captions."""
        return self.jpeg_bytes / max(self.shard_bytes, 1)

    def __str__(self) -> str:
        skipped = 1 - self.rows / max(self.source_rows, 1)
        return (
            f"{self.rows:,} pictures kept of {self.source_rows:,} ({skipped:.1%} skipped): "
            f"{self.shard_bytes:,} bytes instead of {self.jpeg_bytes:,} as JPEG, "
            f"{self.saving:.1f} times less traffic"
        )


def encode(
    source: str,
    folder: Path,
    settings: DataSettings,
    codes: CodeModel,
    count: int | None = None,
    shard_rows: int = 4096,
) -> EncodingReport:
    """Encode the first `count` pictures of a source into shards; finished shards stay.

    Args:
        source: see the module.
        settings: the filters, and the pixels that the VQ-GAN is shown.
        count: None for all; required for the endless shapes.
        shard_rows: source rows of a shard.

    Raises:
        InputError: an endless source without a count, a codebook that int16 cannot hold, or a
            folder that was made with other settings.
    """
    if source == "shapes" and count is None:
        raise InputError("count", count, "must be given: the shapes never end")
    if codes.codebook_size > 2**15:
        raise InputError("codes", codes.codebook_size, "must be at most 32,768 to fit in int16")
    template: dict[str, Any] = {
        "codes": str(settings.codes),
        "pixels": settings.image_pixels,
        "codebook_size": codes.codebook_size,
    }
    done = _finished_shards(folder, template, shard_rows)
    left = None if count is None else max(count - done * shard_rows, 0)
    rows = islice(read_source(source, done * shard_rows, settings.image_pixels), left)
    # None: a bar only on a terminal
    bar = tqdm(rows, total=count, initial=done * shard_rows, unit="picture", disable=None)
    for number, shard in enumerate(_groups(bar, shard_rows), start=done):
        kept = [row for row in shard if is_kept(row, settings)]
        info = ShardInfo(
            first_row=number * shard_rows,
            source_rows=len(shard),
            rows=len(kept),
            jpeg_bytes=sum(row["jpeg_bytes"] for row in kept),
            **template,
        )
        encoded = []
        for start in range(0, len(kept), _BATCH):
            encoded += _encode_rows(kept[start : start + _BATCH], codes, settings)
        write_shard(shard_path(folder, number), encoded, info)
    return summarise(folder)


def read_source(source: str, skip: int = 0, pixels: int = 32) -> Iterator[dict[str, Any]]:
    """Rows of a source: image, caption, NSFW label, original sides and bytes as JPEG.

    A source without a column `NSFW` is taken to be safe; shapes are drawn `pixels` wide.
    """
    if source == "shapes":
        index = skip
        while True:
            sample = draw_sample(index, pixels)
            yield _row({"image": sample.image, "caption": sample.caption}, sample.image)
            index += 1
    from datasets import Image as ImageFeature
    from datasets import load_dataset

    try:
        dataset = load_dataset(source, split="train", streaming=True).skip(skip)
    except (OSError, ValueError) as error:
        rule = f"must be `shapes` or a data set ({first_line(error)})"
        raise InputError("source", source, rule) from error
    for raw in dataset.cast_column("image", ImageFeature(decode=False)):
        content = raw["image"]["bytes"] or Path(raw["image"]["path"]).read_bytes()
        image = Image.open(io.BytesIO(content))
        yield _row(raw, image, len(content) if image.format == "JPEG" else None)


def _row(raw: dict[str, Any], image: Image.Image, jpeg_bytes: int | None = None) -> dict[str, Any]:
    caption = raw.get("caption", raw.get("text"))
    if caption is None and not {"caption", "text"} & raw.keys():
        raise InputError("source", sorted(raw), "must have a column `caption` or `text`")
    return {
        "image": image,
        "caption": caption,
        "NSFW": raw.get("NSFW", SAFE_LABEL),
        "original_width": raw.get("original_width", image.width),
        "original_height": raw.get("original_height", image.height),
        "jpeg_bytes": _jpeg_size(image) if jpeg_bytes is None else jpeg_bytes,
    }


def _encode_rows(
    rows: list[dict[str, Any]], codes: CodeModel, settings: DataSettings
) -> list[dict[str, Any]]:
    tokens = codes.encode([row["image"] for row in rows], settings.image_pixels)
    encoded = [
        {**row, "code": pack_codes(picture)} for row, picture in zip(rows, tokens, strict=True)
    ]
    return [{k: v for k, v in row.items() if k not in ("image", "jpeg_bytes")} for row in encoded]


def summarise(folder: Path) -> EncodingReport:
    """The sums over all shards of a folder."""
    shards = list_shards(folder)
    infos = [read_info(path) for path in shards]
    return EncodingReport(
        source_rows=sum(info.source_rows for info in infos),
        rows=sum(info.rows for info in infos),
        jpeg_bytes=sum(info.jpeg_bytes for info in infos),
        shard_bytes=sum(path.stat().st_size for path in shards),
    )


def _finished_shards(folder: Path, template: dict[str, Any], shard_rows: int) -> int:
    """Shards from the first on that need not be made again; a last, short one is."""
    done = 0
    for path in list_shards(folder):
        info = read_info(path)
        for field, value in template.items():
            if getattr(info, field) != value:
                rule = f"was encoded with {field} {getattr(info, field)}, not {value}"
                raise InputError("output", folder, rule)
        if path != shard_path(folder, done) or info.first_row != done * shard_rows:
            raise InputError("output", folder, f"was encoded with other than {shard_rows} rows")
        if info.source_rows < shard_rows:
            break
        done += 1
    return done


def _groups(rows: Any, size: int) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while group := list(islice(iterator, size)):
        yield group


def _jpeg_size(image: Image.Image) -> int:
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return buffer.tell()


def main(argv: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m training encode", description=__doc__)
    parser.add_argument("source", help="`shapes`, a folder or a data set on the Hub")
    parser.add_argument("--output", type=Path, required=True, help="folder of the shards")
    parser.add_argument("--recipe", default="rehearsal", help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--codes", help="folder or Hub name of the VQ-GAN; default: the recipe's")
    parser.add_argument("--count", type=int, help="number of pictures to read; default: all")
    parser.add_argument("--shard-rows", type=int, default=4096, help="pictures per shard")
    arguments = parser.parse_args(argv)
    settings = find_recipe(arguments.recipe).data
    name = arguments.codes or settings.codes
    if name is None:
        raise InputError("codes", name, f"must be given: recipe {arguments.recipe} names none")
    settings = replace(settings, codes=name)
    codes = CodeModel.load(name)
    report = encode(
        arguments.source, arguments.output, settings, codes, arguments.count, arguments.shard_rows
    )
    print(report)
    return 0
