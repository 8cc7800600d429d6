"""The notebook that joins a run, run as committed against a monitor on this machine."""

import ast
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient

from tests.notebooks.execution import NOTEBOOKS, code_of, prepared, printed, read
from tests.training.processes import Swarm
from tools.console import ROOT
from training.__main__ import make_parser
from training.run import status

NAME = "join.ipynb"


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


@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_has_names_for_its_cells_and_no_outputs(name: str) -> None:
    for cell in read(name).cells:
        assert cell.id.replace("-", "").isalpha()
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    text = (NOTEBOOKS / name).read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


def test_it_holds_no_token_and_never_prints_one() -> None:
    token = code_of(read(NAME), "token")
    for node in ast.walk(ast.parse(token)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            assert all(isinstance(argument, ast.Constant) for argument in node.args)
    assert "getpass.getpass" in token


@pytest.fixture
def run_file(tmp_path: Path) -> Iterator[Path]:
    """The run file of a run that admits everybody, whose monitor runs."""
    swarm = Swarm(tmp_path, recipe="tiny")
    swarm.begin()
    yield swarm.run_file
    swarm.stop()


def stop_when_it_is_in(client: NotebookClient, folder: Path, has_ended: threading.Event) -> None:
    """Send the kernel the signal of the button that stops a cell, once the volunteer is in."""
    while not has_ended.wait(0.1):
        with contextlib.suppress(OSError, ValueError):
            if status.read(folder).get("started"):
                kernel: Any = client.km
                os.kill(kernel.provisioner.process.pid, signal.SIGINT)
                return


@pytest.mark.swarm
def test_a_reader_joins_and_leaves(tmp_path: Path, run_file: Path) -> None:
    client = prepared(NAME, {"RUN": str(run_file), "NAME": "reader"}, tmp_path)
    has_ended = threading.Event()
    given = (client, tmp_path / "volunteer", has_ended)
    threading.Thread(target=stop_when_it_is_in, args=given, daemon=True).start()
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    has_ended.set()
    said = printed(client.nb)
    assert said["install"].startswith("installed in ")
    assert said["token"] == "This run admits everyone, so you need no token.\n"
    doctor = said["doctor"].splitlines()
    assert [line for line in doctor if line.startswith("problem")] == []
    assert any(line.split()[:2] == ["fine", "Entry"] for line in doctor)
    assert any("the run's monitor" in line for line in doctor)
    joined = said["join"].splitlines()
    assert joined[0].startswith("doctor: ")
    assert "looking for the run" in joined
    assert any("step 0 of 1000" in line or "step 0 of 1,000" in line for line in joined)
    assert joined[-1].endswith("done")
