"""Time of one estimate, and of one answer of the page, in CPython and in the browser."""

import json
from pathlib import Path

from benchmarks import timing
from benchmarks.chromium import BARE_ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table

# of a structure met before, of a new one, and of the allocator for 32 layers
TARGET_MILLISECONDS = {"estimate": 1.0, "first estimate": 50.0, "reserved": 100.0}


def run(_quick: bool) -> Table:
    """Time the same program twice."""
    cpython = json.loads(timing.measure())
    browser = _in_the_browser()
    return Table(
        "Time of one call (the fastest of 15 rounds)",
        [
            *(Figure(f"CPython   {name}", 1e3 * s, "ms") for name, s in cpython.items()),
            *(
                Figure(
                    f"Chromium  {name}",
                    1e3 * s,
                    "ms",
                    TARGET_MILLISECONDS.get(name.rpartition(" ")[0]),
                )
                for name, s in browser.items()
            ),
        ],
    )


def _in_the_browser() -> dict[str, float]:
    program = Path(timing.__file__).read_text("utf-8") + "\nmeasure()\n"
    with site_with_bare_pages() as address, fresh_visit() as visit:
        visit.page.set_default_timeout(60_000)
        visit.page.goto(f"{address}bare/index.html?bytecode")
        visit.page.wait_for_selector(BARE_ANSWERED)
        times = json.loads(visit.page.evaluate("(program) => globalThis.ask(program)", program))
    return {str(name): float(seconds) for name, seconds in times.items()}
