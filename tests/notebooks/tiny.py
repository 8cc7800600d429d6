"""A small GPT-2, its tokenizer and a data set laid out like C4, made on the spot."""

import gzip
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from tools.console import ROOT

END = "<|endoftext|>"
SHARDS = 2

# As in the README of allenai/c4, which names the files of each subset.
_CARD = """---
configs:
- config_name: en
  data_files:
  - split: train
    path: en/c4-train.*.json.gz
  - split: validation
    path: en/c4-validation.*.json.gz
---
"""


def texts() -> list[str]:
    """The paragraphs of our own handbooks."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "validation/README.md")]
    paragraphs = [text for page in pages for text in page.read_text("utf-8").split("\n\n")]
    return [text for text in paragraphs if len(text) > 100]


def save_data(folder: Path) -> None:
    """Write the paragraphs as gzipped JSON lines with C4's columns, names and subset."""
    (folder / "en").mkdir(parents=True)
    (folder / "README.md").write_text(_CARD, "utf-8")
    every = texts()
    for split, shards in (("train", SHARDS), ("validation", 1)):
        for shard in range(shards):
            path = folder / "en" / f"c4-{split}.{shard:05d}-of-{shards:05d}.json.gz"
            with gzip.open(path, "wt", encoding="utf-8") as file:
                for text in every[shard::shards]:
                    row = {"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "about:blank"}
                    file.write(json.dumps(row) + "\n")


def save_model(folder: Path, vocabulary: int = 320) -> None:
    """Write a GPT-2 of two layers and a byte-level tokenizer that was trained on the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    end = tokenizer.token_to_id(END)
    shape = {"n_positions": 128, "n_embd": 64, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": end, "eos_token_id": end}
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), **shape, **ends)
    GPT2LMHeadModel(config).save_pretrained(folder)
