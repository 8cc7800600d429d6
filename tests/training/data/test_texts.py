"""Texts as batches of a language model."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from calculator.errors import InputError
from training.data import streaming
from training.data.texts import write_sentences
from training.model.language import TextTokenizer
from training.run.recipes import LANGUAGE

RECIPE = replace(LANGUAGE, data=replace(LANGUAGE.data, shuffle_buffer=8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sentences(tmp_path, "text", 40)
    return tmp_path


def test_a_batch_holds_texts_one_after_the_other_each_with_its_end(folder: Path) -> None:
    stream = streaming.stream(RECIPE, b"peer", folder, 2)
    first, second = next(stream), next(stream)
    assert first["input_ids"].shape == (2, 32)
    assert first["input_ids"].equal(first["labels"])
    tokenizer = TextTokenizer("grammar", 40)
    ids = torch.cat([first["input_ids"], second["input_ids"]]).flatten()
    ends = (ids == tokenizer.end).nonzero().flatten() + 1
    *whole, _cut_off = ids.tensor_split(ends)
    texts = [tokenizer.decode(part[:-1].tolist()) for part in whole]
    known = pq.read_table(folder / "texts-00000.parquet")["text"].to_pylist()
    assert len(texts) > 3
    assert set(texts) <= set(known)


def test_a_stream_goes_on_within_a_text(folder: Path) -> None:
    stream = streaming.stream(RECIPE, b"peer", folder, 1)
    next(stream)
    state = json.loads(json.dumps(stream.state_dict()))
    assert state["rest"], "the test is worth nothing where a text ended with the batch"
    again = streaming.stream(RECIPE, b"peer", folder, 1)
    again.load_state_dict(state)
    for _ in range(5):
        assert next(again)["input_ids"].equal(next(stream)["input_ids"])


def test_rows_without_a_text_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"text": [None, "", "a cat runs ."]})
    pq.write_table(table, tmp_path / "texts-00000.parquet")
    stream = streaming.stream(RECIPE, b"peer", tmp_path, 1)
    ids = set(next(stream)["input_ids"].flatten().tolist())
    assert len(ids) == 5  # four words and an end


def test_data_without_the_column_are_refused(folder: Path) -> None:
    recipe = replace(RECIPE, data=replace(RECIPE.data, text_column="content"))
    with pytest.raises(InputError, match="it has no column content"):
        next(streaming.stream(recipe, b"peer", folder))


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused() -> None:
    with pytest.raises(InputError, match="the model 10"):
        TextTokenizer("grammar", 10)
