"""Data for 'Where the memory goes': what the reader can choose, and the default's figures."""

import json
from pathlib import Path

from calculator.allocator import BLOCK
from calculator.catalog import SOURCES
from templates.pages.numbers.choices import GPUS, choices
from templates.pages.numbers.figures import all_figures
from templates.pages.numbers.savings import MICRO_BATCH
from templates.pieces.accuracy import devices, on_card


def write_assets(assets: Path) -> None:
    """Write the figures of each choice, which the page's script fetches."""
    folder = assets / "numbers"
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in all_figures().items():
        (folder / f"{name}.json").write_text(json.dumps(found), "utf-8")


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    asked = choices()
    return {
        "models": [choice.model for choice in asked[:: len(GPUS)]],
        "cards": [choice.card for choice in asked[: len(GPUS)]],
        "figures": all_figures()[asked[0].name],
        "micro_batch": MICRO_BATCH,
        "sources": SOURCES,
        "block": BLOCK,
        "devices": devices(),
        "card": on_card(),
    }
