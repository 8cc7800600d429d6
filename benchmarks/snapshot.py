"""A second visit's start from Python's kept memory, against the same start without it.

Both starts have what browsers keep of a first visit: files, and the code compiled from WebAssembly.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.chromium import ANSWERED, returning_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table, median
from benchmarks.start import MEMORY_KEPT, REST_MS, Start, measure, wait_until_kept

# The bytes of what is kept as Python's memory.
SIZE = """async () => {
  for (const name of await caches.keys()) {
    const store = await caches.open(name);
    const found = (await store.keys()).find(({url}) => url.endsWith("/memory"));
    if (found) return (await (await store.match(found)).blob()).size;
  }
}"""
STARTED = "() => document.documentElement.dataset.python"


def run(quick: bool) -> Table:
    """Come back to the calculator's page in turns, with the memory and without."""
    rounds = 2 if quick else 5
    without: list[Start] = []
    resumed: list[Start] = []
    sizes: list[float] = []
    with site_with_bare_pages() as address:
        for _ in range(rounds):
            without.append(_return(address, None)[0])
            start, size = _return(address, MEMORY_KEPT)
            resumed.append(start)
            sizes.append(size)
    pairs = list(zip(resumed, without, strict=True))
    times = [one.seconds / other.seconds for one, other in pairs]
    processor = [one.processor_seconds / other.processor_seconds for one, other in pairs]
    return Table(
        f"Second visit from Python's kept memory (median of {rounds})",
        [
            Figure("without: time", median([one.seconds for one in without]), "s"),
            Figure("with: time", median([one.seconds for one in resumed]), "s"),
            Figure(
                "without: processor time", median([one.processor_seconds for one in without]), "s"
            ),
            Figure("with: processor time", median([one.processor_seconds for one in resumed]), "s"),
            Figure("time, without = 1", median(times), ""),
            Figure("processor time, without = 1", median(processor), ""),
            Figure("kept memory", median(sizes), "bytes"),
        ],
    )


def _return(address: str, memory: str | None) -> tuple[Start, float]:
    """The second of two visits, and the bytes of the memory that the first one kept.

    Raises:
        RuntimeError: if the second visit did not start as it was meant to.
    """
    page = f"{address}calculator/"
    with TemporaryDirectory() as folder:
        profile = Path(folder)
        with returning_visit(profile) as visit:
            measure(visit, page, ANSWERED)
            wait_until_kept(visit.page, address)
            if memory:
                visit.page.wait_for_selector(memory, state="attached")
            size = float(visit.page.evaluate(SIZE) or 0) if memory else 0.0
            visit.page.wait_for_timeout(REST_MS)
        with returning_visit(profile) as visit:
            start = measure(visit, page, ANSWERED)
            began = visit.page.evaluate(STARTED)
    if began != ("resumed" if memory else "started"):
        raise RuntimeError(f"The second visit {began}, with {memory or 'no memory kept'}.")
    return start, size
