"""Runs a committed notebook as a reader would, in a kernel of its own, without a network."""

import os
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tools.console import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"
CELL_SECONDS = 300


def read(name: str) -> NotebookNode:
    """The notebook of that name, checked against the format."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_of(notebook: NotebookNode, cell_id: str) -> str:
    (source,) = [cell.source for cell in notebook.cells if cell.id == cell_id]
    return str(source)


def execute(name: str, parameters: Mapping[str, object], folder: Path) -> dict[str, str]:
    """Run a notebook in `folder`, without a network; what each cell printed, by the cell's id.

    The kernel finds our packages and one thread, and no network or cache of this machine.
    """
    client = prepared(name, parameters, folder)
    own = {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython"), "OMP_NUM_THREADS": "1"}
    offline = {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1"}
    client.execute(env={**os.environ, **own, **offline})
    return printed(client.nb)


def prepared(name: str, parameters: Mapping[str, object], folder: Path) -> NotebookClient:
    """A notebook about to run in `folder`.

    `parameters` are assigned after the cell tagged `parameters`, the rest runs as it is committed.
    """
    notebook = read(name)
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    (place,) = [index for index, tagged in enumerate(tags) if "parameters" in tagged]
    lines = [f"{key} = {value!r}" for key, value in parameters.items()]
    notebook.cells.insert(place + 1, nbformat.v4.new_code_cell("\n".join(lines)))
    resources = {"metadata": {"path": str(folder)}}
    return NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3", resources=resources
    )


def printed(notebook: NotebookNode) -> dict[str, str]:
    """Standard output of each cell; libraries draw their progress bars on the other stream."""
    return {
        cell.id: "".join(
            output.text
            for output in cell.outputs
            if output.output_type == "stream" and output.name == "stdout"
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    }
