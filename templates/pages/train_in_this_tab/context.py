"""Data for 'Train in this tab': the recipe's numbers; benchmarks/lesson.py packs the lesson."""

import json
import shutil
from pathlib import Path
from typing import Any

from calculator.units import format_bytes
from templates.pieces.commands import REHEARSE_OPEN
from training.run.recipes import TAB

LESSON = Path(__file__).with_name("lesson.safetensors")
RECORDED = Path(__file__).with_name("recorded.json")  # by tests/browser/swarm_picture.py


def write_assets(assets: Path) -> None:
    """Copy what the page fetches when training starts."""
    shutil.copyfile(LESSON, assets / LESSON.name)


def about() -> dict[str, Any]:
    """The lesson's own words, from the header of the file (safetensors: its length in 8 bytes)."""
    content = LESSON.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    found: dict[str, Any] = json.loads(header["__metadata__"]["about"])
    return found


def figure() -> dict[str, object]:
    """The names that the figure itself uses, also on Home."""
    return {
        "recipe": TAB,
        "recorded": json.loads(RECORDED.read_text("utf-8")),
        "lesson_size": format_bytes(LESSON.stat().st_size),
    }


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    lesson = about()
    return figure() | {
        "parameters": lesson["parameters"],
        "gradient_size": format_bytes(4 * lesson["parameters"]),
        "update_size": format_bytes(lesson["update_bytes"]),
        "local_steps": lesson["round"],
        "rehearse": REHEARSE_OPEN,
    }
