"""Texts and drawings that a page's own script makes, for the page before that script runs."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tools.console import run
from tools.node import Node, find_node


def ask_script(script: Path, *arguments: str | Path) -> dict[str, Any]:
    """The JSON object that a script writes in Node.js.

    Raises:
        BuildError: with the script's own words if it fails.
    """
    command = [_node().node, script, *arguments]
    found: dict[str, Any] = json.loads(run(command, f"{script.name} could not describe the run."))
    return found


@cache
def _node() -> Node:
    return find_node()
