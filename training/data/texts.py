"""Texts as a language model reads them: one after the other, cut into sequences of one length."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from training.data.reading import TEXT, Kinds, Sample, as_bytes, decode
from training.model.build import config_of
from training.model.language import TextTokenizer
from training.run.atomic import replacing
from training.run.recipes import LanguageSettings, Recipe
from training.shapes import grammar

LONGEST_TEXT = 2**20  # bytes; what is longer is cut
SENTENCES_COUNT = 20_480  # texts of the grammar that are written where a run names no folder


class Texts:
    """Rows with a text; a batch is `input_ids` and `labels`, both int64 [B, S].

    Each text ends with a token of its own. Attention does not stop there: a sequence may hold the
    end of one text and the beginning of the next, as it is usual.

    Args:
        recipe: names the column, the tokenizer, the model and the length of a sequence.
    """

    def __init__(self, recipe: Recipe) -> None:
        assert isinstance(recipe.model, LanguageSettings)
        self._column, self._length = recipe.data.text_column, recipe.model.sequence_length
        self.columns: dict[str, Kinds] = {self._column: TEXT}
        self.rest: list[int] = []
        self._tokenizer = TextTokenizer(recipe.data.tokenizer, config_of(recipe).vocab_size)

    def rows(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Rows as Python's values, texts as bytes."""
        for text in as_bytes(batch.column(self._column), LONGEST_TEXT).to_pylist():
            yield {self._column: text}

    def check(self, row: dict[str, Any]) -> tuple[Sample | None, str]:
        """The text of a row; None with the reason, which is empty where there is no text."""
        content = row[self._column]
        if not content:
            return None, ""
        text = decode(content, LONGEST_TEXT)
        return (None, f"{self._column} is not UTF-8") if text is None else ((text,), "")

    def batch(
        self, draw: Callable[[], Sample], _leave_out: Callable[[str], None], size: int
    ) -> dict[str, torch.Tensor]:
        """A batch of the next tokens; what is left of the last text begins the next batch."""
        wanted = size * self._length
        while len(self.rest) < wanted:
            (text,) = draw()
            self.rest += [*self._tokenizer.encode(text), self._tokenizer.end]
        ids = torch.tensor(self.rest[:wanted]).view(size, self._length)
        self.rest = self.rest[wanted:]
        return {"input_ids": ids, "labels": ids.clone()}


def write_sentences(folder: Path, column: str, count: int = SENTENCES_COUNT) -> None:
    """Write the grammar's texts as a shard, as a whole, unless it is there."""
    path = folder / "texts-00000.parquet"
    if path.exists():
        return
    table = pa.table({column: [grammar.write_text(index) for index in range(count)]})
    with replacing(path) as temporary:
        pq.write_table(table, temporary)
