"""A second visit's start from a memory snapshot, against the same start without one.

Pyodide can write down its memory and start from it (`_makeSnapshot`, `_loadSnapshot`: private).
Both starts have what browsers keep of a first visit: files, and the code compiled from WebAssembly.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.chromium import BARE_ANSWERED, returning_visit, site_with_bare_pages
from tests.benchmarks.figures import Figure, Table, median
from tests.benchmarks.start import REST_MS, Start, measure

PAGE = "bare/snapshot.html"
DATA = "() => ({...document.querySelector('#answer').dataset})"


def run(quick: bool) -> Table:
    """Come back to two pages in turns, with the snapshot and without."""
    rounds = 2 if quick else 5
    plain: list[Start] = []
    loaded: list[Start] = []
    made: list[tuple[Start, float, float]] = []
    seeds: set[str] = set()
    with site_with_bare_pages() as address:
        for _ in range(rounds):
            with TemporaryDirectory() as folder:
                _visit(Path(folder), f"{address}{PAGE}?plain")
                plain.append(_visit(Path(folder), f"{address}{PAGE}?plain")[0])
            with TemporaryDirectory() as folder:
                start, data = _visit(Path(folder), f"{address}{PAGE}?make")
                made.append((start, float(data["bytes"]), float(data["seconds"])))
                start, data = _visit(Path(folder), f"{address}{PAGE}?load")
                loaded.append(start)
                seeds.add(data["seed"])
    pairs = list(zip(loaded, plain, strict=True))
    processor = median([one.processor_seconds / other.processor_seconds for one, other in pairs])
    return Table(
        f"Second visit: memory snapshot against compiled code (median of {rounds})",
        [
            Figure("without: time", median([one.seconds for one in plain]), "s"),
            Figure("without: processor time", median([s.processor_seconds for s in plain]), "s"),
            Figure("snapshot: time", median([one.seconds for one in loaded]), "s"),
            Figure("snapshot: processor time", median([s.processor_seconds for s in loaded]), "s"),
            Figure(
                "snapshot: time, without = 1", median([a.seconds / b.seconds for a, b in pairs]), ""
            ),
            Figure("snapshot: processor time, without = 1", processor, ""),
            Figure("snapshot to keep", median([size for _, size, _ in made]), "bytes"),
            Figure("to make and keep it", median([seconds for *_, seconds in made]), "s"),
            Figure(
                "first visit that makes it: time", median([one.seconds for one, *_ in made]), "s"
            ),
            Figure("different hash seeds of snapshots", len(seeds), f"of {rounds}"),
        ],
    )


def _visit(profile: Path, address: str) -> tuple[Start, dict[str, str]]:
    with returning_visit(profile) as visit:
        start = measure(visit, address, BARE_ANSWERED)
        data: dict[str, str] = visit.page.evaluate(DATA)
        visit.page.wait_for_timeout(REST_MS)
        return start, data
