"""The code of the committed notebooks, so that a page shows what the tests run."""

import json
from functools import cache
from typing import Any

from calculator.errors import unknown_name
from tools.console import ROOT

FOLDER = ROOT / "docs" / "notebooks"


@cache
def code_cells(name: str) -> dict[str, str]:
    """The source of each code cell of a notebook in docs/notebooks, by the cell's id."""
    notebook: dict[str, Any] = json.loads((FOLDER / name).read_text("utf-8"))
    return {
        cell["id"]: "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


def code(name: str, cell_id: str) -> str:
    """The source of one code cell.

    Raises:
        InputError: the notebook has no such cell.
    """
    cells = code_cells(name)
    if cell_id not in cells:
        raise unknown_name("cell", cell_id, cells)
    return cells[cell_id]
