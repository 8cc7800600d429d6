"""Steps that fitcheck's authors measured on a Tesla T4, as rows of the scoreboard.

Each has PyTorch's allocated and reserved bytes, and what the driver shows for the process.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from calculator.catalog import find_model
from validation.published_rows import Figure, Row, Source

PATH: Final = Path(__file__).with_name("published") / "t4.jsonl"
ADDRESS: Final = "https://github.com/Anassbzdd/fitcheck"
EFFICIENT: Final = "sdpa, efficient kernel"
# what the catalog calls the same shape
SHAPES: Final = {"Qwen/Qwen2.5-1.5B-Instruct": "Qwen/Qwen2.5-1.5B"}
ASSUMED: Final = (
    "Its script: weights in fp16 without autocast, adapters and AdamW's states in 32 bits; each "
    "step in a function that keeps the model's output to its end.",
    "QLoRA: prepare_model_for_kbit_training brings everything that is not packed to 32 bits; "
    "packed layers compute in fp16.",
    "The script repeats shared keys and values before it calls the efficient kernel, which "
    "transformers does not. No option of ours does either: those rows are a check of our "
    "operations.",
)


@cache
def source() -> Source:
    """All of its rows."""
    return Source(
        "t4",
        "Tesla T4, measured by fitcheck",
        {"fitcheck-llm 0.3.1, measurements": ADDRESS},
        "Tesla T4, PyTorch 2.10 and 2.14",
        "t4",
        Figure.ALLOCATED,
        ASSUMED,
        ("Twelve rows of 2026-09-21, with which its authors tested their formulas.",),
        tuple(_rows()),
    )


def _rows() -> Iterator[Row]:
    seen: dict[str, int] = {}
    for line in PATH.read_text("utf-8").splitlines():
        row = json.loads(line)
        words = _words(row)
        seen[words] = seen.get(words, 0) + 1
        again = f", run {seen[words]}" if seen[words] > 1 else ""
        yield _row(row, words + again)


def _words(row: Mapping[str, Any]) -> str:
    name, way = row["model"].partition("/")[2], "QLoRA" if row["quantization"] else "LoRA"
    kernel = "efficient" if row["attention"] == EFFICIENT else "eager"
    return f"{name}, {way}, {kernel}, {row['batch_size']} x {row['sequence_length']:,}"


def _row(row: Mapping[str, Any], words: str) -> Row:
    model = SHAPES.get(row["model"], row["model"])
    efficient = row["attention"] == EFFICIENT
    shape = find_model(model)
    options = {
        "batch_size": row["batch_size"],
        "sequence_length": row["sequence_length"],
        "loop": "function",
        "format": "fp16",
        "precision": "fp32" if row["quantization"] else "half",
        "attention": "efficient" if efficient else "eager",
        "checkpointing": "full",
        "lora": row["rank"],
        "lora_targets": ",".join(row["targets"]),
        "quantization": row["quantization"] or "none",
    }
    return Row(
        words,
        model,
        {name: str(value) for name, value in options.items()},
        str(row["peak_allocated"]),
        "B",
        more={Figure.OF_ALLOCATOR: str(row["peak_reserved"]), Figure.USED: str(row["process"])},
        by_hand=efficient and shape.numbers["key_value_heads"] < shape.heads,
    )
