"""Ways to train in a page: typed arrays, WebAssembly with SIMD, a library, WebGPU.

The arithmetic runs in Node.js, whose engine is Chromium's. TensorFlow.js is downloaded for this
measurement alone.
"""

import json
from pathlib import Path

from benchmarks.chromium import fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table
from templates.pages.train_in_this_tab.context import LESSON
from tools.console import run as run_command
from tools.files import WORKSHOP
from tools.node import environment_of, find_node

PROGRAM = Path(__file__).with_name("tab_ways.mjs")
LIBRARY = ("@tensorflow/tfjs-core@4.22.0", "@tensorflow/tfjs-backend-wasm@4.22.0")
ADAPTERS = "async () => Number(Boolean(await navigator.gpu?.requestAdapter()))"


def run(quick: bool) -> Table:
    """Median milliseconds of processor time; with `quick` of fewer rounds."""
    node = find_node()
    folder = WORKSHOP / "tfjs"
    folder.mkdir(parents=True, exist_ok=True)
    install: list[str | Path] = [*node.npm, "install", "--prefix", folder, "--no-save", *LIBRARY]
    run_command(install, "TensorFlow.js did not install.", environment=environment_of(node))
    command = [node.node, PROGRAM, LESSON, folder, "20" if quick else "200"]
    measured = json.loads(run_command(command, "The arithmetic failed."))
    figures = [Figure(name, value, "ms") for name, value in measured.items()]
    with site_with_bare_pages() as address, fresh_visit() as visit:
        visit.page.goto(address)
        figures.append(Figure("WebGPU adapters here", visit.page.evaluate(ADAPTERS), ""))
    return Table("Ways to train in a page, four pictures at a time, one core", figures)
