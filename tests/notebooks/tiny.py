"""A small GPT-2, its tokenizer and a data set laid out like C4, made on the spot."""

from pathlib import Path

from pandas import DataFrame
from tokenizers import ByteLevelBPETokenizer
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
            rows = {"text": every[shard::shards]}
            rows |= {"timestamp": "2019-04-25T12:57:54Z", "url": "about:blank"}
            path = folder / "en" / f"c4-{split}.{shard:05d}-of-{shards:05d}.json.gz"
            DataFrame(rows).to_json(path, orient="records", lines=True)


def save_model(folder: Path, vocabulary: int = 320) -> None:
    """Write a GPT-2 of two layers and a byte-level tokenizer that was trained on the texts."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts(), vocabulary, special_tokens=[END], show_progress=False)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, eos_token=END)
    fast.save_pretrained(folder)
    end = tokenizer.token_to_id(END)
    shape = {"n_positions": 128, "n_embd": 64, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": end, "eos_token_id": end}
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), **shape, **ends)
    GPT2LMHeadModel(config).save_pretrained(folder)
