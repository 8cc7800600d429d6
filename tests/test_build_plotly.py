"""The charts' library, whose body browsers are told to compile at once."""

import json
import subprocess
from pathlib import Path

import pytest

from tools.console import BuildError
from tools.node import NODE_MODULES, find_node
from tools.plotly import BODY, SCRIPT, stage_plotly

PACKAGE = "plotly.js-basic-dist-min"
# Runs a script as a page does, and prints the type of what it defines.
RUN = """
const { readFileSync } = require("node:fs");
const { runInNewContext } = require("node:vm");
let parsed = "";
try { runInNewContext(readFileSync(PATH, "utf8"), { window: {} }); }
catch (error) { parsed = error.name; }
console.log(parsed);
"""


def test_only_the_parentheses_differ_from_what_plotly_publishes(tmp_path: Path) -> None:
    stage_plotly(tmp_path, NODE_MODULES)
    staged = (tmp_path / SCRIPT).read_text("utf-8")
    published = (NODE_MODULES / PACKAGE / SCRIPT).read_text("utf-8")
    assert len(staged) == len(published) + 2
    assert staged.replace("this, (() =>", "this, () =>").replace("})));", "}));") == published
    program = RUN.replace("PATH", json.dumps(str(tmp_path / SCRIPT)))
    done = subprocess.run(
        [find_node().node, "-e", program], capture_output=True, text=True, check=True
    )
    assert "SyntaxError" not in done.stdout  # it may miss a document


@pytest.mark.parametrize("part", BODY)
def test_another_plotly_stops_the_build(tmp_path: Path, part: str) -> None:
    package = tmp_path / PACKAGE
    package.mkdir()
    text = "".join(BODY).replace(part, "")
    (package / SCRIPT).write_text(text, "utf-8")
    with pytest.raises(BuildError, match="Plotly has changed"):
        stage_plotly(tmp_path, tmp_path)
