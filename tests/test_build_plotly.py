"""The charts' library, which browsers compile while it loads, and run in parts."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tools.console import BuildError
from tools.node import NODE_MODULES, find_node
from tools.plotly import CHANGES, SCRIPT, stage_plotly

PACKAGE = "plotly.js-basic-dist-min"
# Runs a script as a page does, and prints how many parts it gives, and the type of what is last.
RUN = """
const { readFileSync } = require("node:fs");
const { runInNewContext } = require("node:vm");
const window = {};
runInNewContext(readFileSync(PATH, "utf8"), { window });
console.log(window.plotlyParts.parts.length, typeof window.plotlyParts.whole);
"""
# Where a module begins, with its name, and where one asks for another.
MODULE = re.compile(r"(?:var |,|;)([\w$]+)=W\((?=\(|[\w$]+=>)")
CALLED = re.compile(r"(?<![\w$.])([\w$]+)\(\)")


def staged(folder: Path) -> str:
    """The library as the site has it."""
    stage_plotly(folder, NODE_MODULES)
    return (folder / SCRIPT).read_text("utf-8")


def test_it_parses_and_is_otherwise_what_plotly_publishes(tmp_path: Path) -> None:
    text = staged(tmp_path)
    for old, new in CHANGES.items():
        assert text.count(new) == 1
        text = text.replace(new, old)
    assert text == (NODE_MODULES / PACKAGE / SCRIPT).read_text("utf-8")
    program = RUN.replace("PATH", json.dumps(str(tmp_path / SCRIPT)))
    done = subprocess.run(
        [find_node().node, "-e", program], capture_output=True, text=True, check=True
    )
    count, kind = done.stdout.split()
    assert kind == "function"
    assert int(count) == len(MODULE.findall(text)) > 300


def test_no_module_asks_for_one_behind_it(tmp_path: Path) -> None:
    """Else it would matter which of two modules that ask for each other runs first."""
    pieces = MODULE.split(staged(tmp_path))[1:]
    names, bodies = pieces[::2], pieces[1::2]
    for at, body in enumerate(bodies):
        assert not set(CALLED.findall(body)) & set(names[at + 1 :])


@pytest.mark.parametrize("part", CHANGES)
def test_another_plotly_stops_the_build(tmp_path: Path, part: str) -> None:
    package = tmp_path / PACKAGE
    package.mkdir()
    text = "".join(CHANGES).replace(part, "")
    (package / SCRIPT).write_text(text, "utf-8")
    with pytest.raises(BuildError, match="Plotly has changed"):
        stage_plotly(tmp_path, tmp_path)
