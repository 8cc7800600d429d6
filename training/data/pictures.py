"""Captioned pictures in shards, as a text-to-image model reads them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from calculator.errors import InputError
from training.data.reading import BYTES, NUMBER, TEXT, Kinds, Sample, as_bytes, decode
from training.data.shards import is_kept, unpack_codes
from training.model.captions import load_tokenizer
from training.run.recipes import DataSettings, ModelSettings

LONGEST_CAPTION = 4096  # bytes; what is longer is cut
_COLUMNS: dict[str, Kinds] = {
    "caption": TEXT,
    "code": BYTES,
    "NSFW": TEXT,
    "original_width": NUMBER,
    "original_height": NUMBER,
}


class Pictures:
    """Rows of captions and codes; a sample is a caption and codes as `shards.pack_codes` packs.

    A batch is `text_ids`, int64 [B, T], and `image_codes`, int64 [B, I].

    Args:
        model: the shape that the codes must have.
    """

    def __init__(self, data: DataSettings, model: ModelSettings) -> None:
        self.columns: dict[str, Kinds] = dict(_COLUMNS)
        self.data, self.model = data, model
        self.rest: list[int] = []
        self._tokenizer = load_tokenizer(data.tokenizer, model)

    def rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Rows as Python's values; codes of another length stay outside, as their length."""
        columns = {name: batch.column(name) for name in self.columns}
        for name in ("caption", "NSFW"):
            columns[name] = as_bytes(columns[name], LONGEST_CAPTION)
        codes = columns.pop("code")
        columns["length"] = pc.binary_length(codes)
        values = [column.to_pylist() for column in columns.values()]
        whole = 2 * self.model.image_side**2
        # a comparison by pyarrow would import pandas: 40 MiB and 0.7 s of each volunteer
        for code, *row in zip(codes, *values, strict=True):
            found = dict(zip(columns, row, strict=True))
            yield {**found, "code": code.as_py() if found["length"] == whole else None}

    def check(self, row: dict[str, Any]) -> tuple[Sample | None, str]:
        """The sample of a row; None with the reason, which is empty where a filter drops it."""
        for name in ("caption", "NSFW"):
            if row[name] is not None:
                row[name] = decode(row[name], LONGEST_CAPTION)
                if row[name] is None:
                    return None, f"{name} is not UTF-8"
        if not is_kept(row, self.data):
            return None, ""
        reason = self._fault(row)
        return (None, reason) if reason else ((row["caption"], row["code"]), "")

    def batch(
        self, draw: Callable[[], Sample], leave_out: Callable[[str], None], size: int
    ) -> dict[str, torch.Tensor]:
        """A batch of captioned pictures, without captions that the tokenizer refuses."""
        texts: list[torch.Tensor] = []
        pictures: list[torch.Tensor] = []
        while len(texts) < size:
            caption, code = draw()
            try:
                texts.append(self._tokenizer([caption]))
            except InputError as error:
                leave_out(error.rule)
                continue
            pictures.append(torch.from_numpy(unpack_codes(code)))
        return {"text_ids": torch.cat(texts), "image_codes": torch.stack(pictures)}

    def _fault(self, row: dict[str, Any]) -> str:
        if row["length"] is None:
            return "there are no codes"
        if row["code"] is None:
            count = self.model.image_side**2
            return f"must have {count} codes a picture, but has {row['length']:,} bytes"
        codes = unpack_codes(row["code"])
        if int(np.min(codes)) < 0 or int(np.max(codes)) >= self.model.image_vocabulary_size:
            return f"must have codes from 0 to {self.model.image_vocabulary_size - 1}"
        return ""
