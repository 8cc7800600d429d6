"""Time and processor time to Python's first answer, against a page with stock Pyodide alone."""

from dataclasses import dataclass

from tests.benchmarks.chromium import ANSWERED, BARE_ANSWERED, fresh_visit, site_with_bare_pages
from tests.benchmarks.figures import Figure, Table, median

TARGET_RATIO = 0.5

PAGES = {
    "stock Pyodide alone": ("bare/index.html?stock", BARE_ANSWERED),
    "compiled library alone": ("bare/index.html?bytecode", BARE_ANSWERED),
    "calculator's page": ("calculator/", ANSWERED),
}


@dataclass(frozen=True)
class Start:
    """Times of one first visit until Python has answered."""

    seconds: float
    processor_seconds: float


def run(quick: bool) -> Table:
    """Visit the pages in turns, each time with a fresh browser, so that all meet the same load."""
    rounds = 3 if quick else 9
    starts: dict[str, list[Start]] = {name: [] for name in PAGES}
    with site_with_bare_pages() as address:
        for _ in range(rounds):
            for name, (path, answered) in PAGES.items():
                starts[name].append(_visit(address + path, answered))
    figures = []
    for name, seen in starts.items():
        figures.append(Figure(f"{name}: time", median([s.seconds for s in seen]), "s"))
        processor = median([s.processor_seconds for s in seen])
        figures.append(Figure(f"{name}: processor time", processor, "s"))
    stock, _, page = (starts[name] for name in PAGES)
    ratios = [p.processor_seconds / s.processor_seconds for p, s in zip(page, stock, strict=True)]
    figures.append(
        Figure("processor time, calculator's page / stock", median(ratios), "", TARGET_RATIO)
    )
    return Table(f"First answer of Python, first visit (median of {rounds})", figures)


def _visit(address: str, answered: str) -> Start:
    with fresh_visit() as visit:
        visit.page.set_default_timeout(60_000)
        before = visit.processor_seconds()
        visit.page.goto(address, wait_until="commit")
        visit.page.wait_for_selector(answered)
        milliseconds = float(visit.page.evaluate("performance.now()"))
        return Start(milliseconds / 1e3, visit.processor_seconds() - before)
