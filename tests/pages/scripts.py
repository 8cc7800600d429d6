"""Functions of the pages' scripts, called in Node.js."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from tools.console import ROOT
from tools.node import find_node

PROGRAM = """
import {{ {name} as asked }} from {address};
import {{ readFileSync }} from "node:fs";
const calls = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(calls.map((given) => asked(...given) ?? null)));
"""


def printed(program: str, given: str = "") -> str:
    """The output of a module in Node.js."""
    command = [find_node().node, "--input-type=module", "--eval", program]
    return subprocess.check_output(command, input=given, text=True)


def call(script: str, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
    """A function's results for each list of arguments; None for undefined and NaN.

    Args:
        script: its path in the repository, such as "docs/assets/live/words.js".
        name: of a function that the script exports.
        calls: one list of arguments for each call.
    """
    address = json.dumps((ROOT / script).as_uri())
    return json.loads(printed(PROGRAM.format(name=name, address=address), json.dumps(calls)))
