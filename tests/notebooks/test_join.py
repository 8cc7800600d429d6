"""The notebook that joins a run, run as committed against a monitor on this machine."""

import ast
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.execution import NOTEBOOKS, code_of, read
from tools.console import ROOT
from training.__main__ import make_parser
from training.run import status
from training.run.supervisor import Worker

NAME = "join.ipynb"
PATIENCE = 180.0  # seconds, for a busy machine


def commands() -> list[list[str]]:
    """The notebook's arguments to `python -m training`, with a word for each parameter."""
    sources = [cell.source for cell in read(NAME).cells if cell.cell_type == "code"]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    return [
        [_word(argument) for argument in node.args]
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "run"
    ]


def _word(node: ast.expr) -> str:
    return node.id.lower() if isinstance(node, ast.Name) else str(ast.literal_eval(node))


def test_every_command_in_it_is_one_of_ours() -> None:
    parsed = [make_parser().parse_args(words) for words in commands()]
    assert [options.command for options in parsed] == ["doctor", "join"]
    assert all(options.behind_firewall for options in parsed)
    assert len({str(options.folder) for options in parsed}) == 1


def test_it_has_names_for_its_cells_and_no_outputs() -> None:
    notebook = read(NAME)
    for cell in notebook.cells:
        assert cell.id.replace("-", "").isalpha()
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    text = (NOTEBOOKS / NAME).read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def test_it_holds_no_token_and_never_prints_one() -> None:
    token = code_of(read(NAME), "token")
    for node in ast.walk(ast.parse(token)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            assert all(isinstance(argument, ast.Constant) for argument in node.args)
    assert "getpass.getpass" in token


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Path]:
    """A monitor of a run that admits everybody; gives the run file for volunteers."""
    folder, run_file = tmp_path / "monitor", tmp_path / "run.toml"
    head = f'name = "notebook-{os.getpid()}"\nrecipe = "tiny"\nlive = "{tmp_path / "live"}"\n'
    run_file.write_text(head)
    command = [sys.executable, "-m", "training", "monitor", str(run_file), "--folder", str(folder)]
    command += ["--live", str(tmp_path / "live"), "--host", "127.0.0.1"]
    worker = Worker(command, folder, threads=1, log=tmp_path / "monitor.txt")
    worker.start()
    deadline = time.monotonic() + PATIENCE
    while not worker.has_started:
        if worker.hangs:
            worker.kill()
            worker.start()
        assert time.monotonic() < deadline, (tmp_path / "monitor.txt").read_text()
        time.sleep(0.1)
    run_file.write_text(f"{head}initial_peers = {json.dumps(status.read(folder)['addresses'])}\n")
    yield run_file
    worker.kill()


class Reader:
    """Somebody who runs the cells, and stops the last one once the volunteer is in the run.

    The volunteer's folder tells whether it is; the kernel gets the signal that the button for
    stopping a cell sends.
    """

    def __init__(self, folder: Path, parameters: dict[str, str]) -> None:
        self.folder = folder
        self.notebook = read(NAME)
        (place,) = [i for i, cell in enumerate(self.notebook.cells) if cell.id == "parameters"]
        lines = [f"{key} = {value!r}" for key, value in parameters.items()]
        self.notebook.cells.insert(place + 1, nbformat.v4.new_code_cell("\n".join(lines)))
        self.client = NotebookClient(
            self.notebook, timeout=PATIENCE, resources={"metadata": {"path": str(folder)}}
        )
        self.has_stopped = threading.Event()

    def run(self) -> dict[str, str]:
        watcher = threading.Thread(target=self._stop_when_it_is_in, daemon=True)
        watcher.start()
        self.client.execute(env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
        self.has_stopped.set()
        return {cell.id: _printed(cell) for cell in self.notebook.cells}

    def _stop_when_it_is_in(self) -> None:
        folder = self.folder / "volunteer"
        while not self.has_stopped.wait(0.2):
            with contextlib.suppress(OSError, ValueError):
                if status.read(folder).get("started"):
                    kernel: Any = self.client.km
                    os.kill(kernel.provisioner.process.pid, signal.SIGINT)
                    return


def _printed(cell: Any) -> str:
    outputs = cell.get("outputs", [])
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.mark.swarm
def test_a_reader_joins_and_leaves(tmp_path: Path, monitor: Path) -> None:
    printed = Reader(tmp_path, {"RUN": str(monitor), "NAME": "reader"}).run()
    assert printed["install"].startswith("installed in ")
    assert printed["token"] == "This run admits everyone, so you need no token.\n"
    doctor = printed["doctor"].splitlines()
    assert [line for line in doctor if line.startswith("problem")] == []
    assert any(line.split()[:2] == ["fine", "Entry"] for line in doctor)
    assert any("the run's monitor" in line for line in doctor)
    joined = printed["join"].splitlines()
    assert joined[0].startswith("doctor: ")
    assert "looking for the run" in joined
    assert any("step 0 of 200" in line for line in joined)
    assert joined[-1].endswith("done")
