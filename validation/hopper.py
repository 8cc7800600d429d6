"""Steps that we measured on an H100 and an H200, as rows of the scoreboard.

Each has PyTorch's allocated and reserved bytes, and what the driver shows for the process, over
three steps from an empty card (`python -m validation measure --device cuda` does the same). The
plans of the H100 were chosen, those of the H200 drawn at random; the ranges of `calculator.bounds`
were fitted to the first and tried on the second.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from validation.published_rows import Figure, Row, Source

FOLDER: Final = Path(__file__).with_name("published")
TITLES: Final = {"h100": "H100, measured by us", "h200": "H200, measured by us, random plans"}
ASSUMED: Final = (
    "The models are transformers' classes with random weights, as the program on the calculator's "
    "page trains them.",
    "PyTorch 2.11 and transformers 5.17, where we count PyTorch 2.13 and transformers 5.23.",
)


LEFT_OUT: Final = {
    "h100": (
        "Six steps of T5 and mT5 without checkpointing: transformers 5.17 hands sdpa a mask that "
        "only the math kernel takes, 5.20 and later do not. With that changed, five of them "
        "requested what we count on the H100, within 1,400 bytes.",
    ),
    "h200": (),
}


@cache
def source(card: str) -> Source:
    """All rows of a card."""
    return Source(
        card,
        TITLES[card],
        {"the command that measures": "../accuracy/#send"},
        f"{card.upper()}, PyTorch 2.11, transformers 5.17",
        card,
        Figure.ALLOCATED,
        ASSUMED,
        LEFT_OUT[card],
        tuple(_rows(card)),
    )


def _rows(card: str) -> Iterator[Row]:
    for line in (FOLDER / f"{card}.jsonl").read_text("utf-8").splitlines():
        yield _row(json.loads(line))


def _row(row: Mapping[str, Any]) -> Row:
    options = {name: str(value) for name, value in row["configuration"].items()}
    model = options.pop("model")
    more = {Figure.OF_ALLOCATOR: str(row["reserved"]), Figure.USED: str(row["process"])}
    return Row(_words(model, options), model, options, str(row["allocated"]), "B", more=more)


def _words(model: str, options: Mapping[str, str]) -> str:
    said = (f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    return ", ".join((model.rpartition("/")[2], *said))
