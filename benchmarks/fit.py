"""Time of the verdicts for one model on every GPU, for each model of the catalog."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import fitting
from benchmarks.chromium import BARE_ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table, median
from tools.console import ROOT

TARGET_MILLISECONDS = 50.0


def run(_quick: bool) -> Table:
    """Go through the catalog twice, each time in a Python that has seen nothing."""
    figures = [*_figures("CPython  ", _in_cpython()), *_figures("Chromium ", _in_the_browser())]
    return Table("`fit` of a model on all GPUs, first time", figures)


def _figures(where: str, seconds: Mapping[str, float]) -> Iterator[Figure]:
    times = list(seconds.values())
    slowest = max(seconds, key=lambda name: seconds[name])
    mean = 1e3 * sum(times) / len(times)
    yield Figure(f"{where} mean of {len(times)} models", mean, "ms", TARGET_MILLISECONDS)
    yield Figure(f"{where} median", 1e3 * median(times), "ms", TARGET_MILLISECONDS)
    longest = 1e3 * seconds[slowest]
    yield Figure(f"{where} longest, {slowest}", longest, "ms", TARGET_MILLISECONDS)
    over = sum(1e3 * one > TARGET_MILLISECONDS for one in times)
    yield Figure(f"{where} models that take longer than the target", over, "")


def _in_cpython() -> dict[str, float]:
    program = f"from {fitting.__name__} import measure; print(measure())"
    words = [sys.executable, "-c", program]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return _read(found.stdout)


def _in_the_browser() -> dict[str, float]:
    program = Path(fitting.__file__).read_text("utf-8") + "\nmeasure()\n"
    with site_with_bare_pages() as address, fresh_visit() as visit:
        visit.page.set_default_timeout(60_000)
        visit.page.goto(f"{address}bare/index.html?bytecode")
        visit.page.wait_for_selector(BARE_ANSWERED)
        return _read(visit.page.evaluate("(program) => globalThis.ask(program)", program))


def _read(text: str) -> dict[str, float]:
    return {str(name): float(seconds) for name, seconds in json.loads(text).items()}
