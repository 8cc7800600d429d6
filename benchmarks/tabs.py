"""Tabs in a real run: three beside two Python volunteers, against five Python volunteers.

The run is the recipe `sparse` on this machine, so all of them share its processor. A volunteer that
gets more of it makes more local steps in a round, and several steps in a row teach more than as
many side by side. So losses at equal sequences are compared where a round is one step of each.
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.chromium import fresh_visit
from benchmarks.figures import Figure, Table
from tests.browser.running_run import LIE, Run
from tests.browser.visits import Visit
from training.monitor.judging import SEQUENCES, HeldBatches
from training.run.recipes import SPARSE

TABS = ("tab one", "tab two", "tab three")
PYTHON = ("one", "two", "three", "four", "five")
LOOKS = (2_000, 4_000)  # sequences after which the loss is measured
HELD = 512  # sequences on which it is
PATIENCE = 1_200.0
# A round is one step of each of five: of its seconds, the first step takes more.
ONE_STEP = {"seconds": 1e-3, "quorum": len(PYTHON)}
SECRET = b"held by benchmarks/tabs.py"


def run(quick: bool) -> Table:
    """Loss at equal sequences, updates kept, seconds to the first; `quick`: to the first look."""
    looks = LOOKS[:1] if quick else LOOKS
    with fresh_visit() as visit:
        figures = _at_own_pace(visit.browser, looks)
    with fresh_visit() as visit, tempfile.TemporaryDirectory() as folder:
        mixed = _side_by_side(visit.browser, Path(folder), looks)
    alone = [_of_python_alone(looks) for _ in range(2)]
    for look, (loss, rounds), *without in zip(looks, mixed, *alone, strict=True):
        other, again = (found for found, _ in without)
        figures += [
            Figure(f"loss after {look:,} sequences, three tabs of five", loss, "nats"),
            Figure("  rounds", rounds, ""),
            Figure(f"loss after {look:,} sequences, no tabs", other, "nats"),
            Figure("  rounds", without[0][1], ""),
            Figure("  more than without tabs", 100 * (loss / other - 1), "%", 3),
            Figure("  a second run without tabs, more", 100 * (again / other - 1), "%"),
        ]
    return Table("Three tabs and two Python volunteers, against five Python volunteers", figures)


def _side_by_side(
    browser: Browser, folder: Path, looks: tuple[int, ...]
) -> list[tuple[float, int]]:
    """Losses of three tabs and two Python volunteers, each of whose rounds is a step."""
    with Run(folder, SPARSE, PYTHON[:2], **ONE_STEP) as made:
        pages = [_join(browser, made, name).page for name in TABS]
        losses = _losses(made, looks, lambda: pages[0].wait_for_timeout(100))
        for page in pages:
            page.context.close()
    return losses


def _of_python_alone(looks: tuple[int, ...]) -> list[tuple[float, int]]:
    """Losses of five Python volunteers, each of whose rounds is a step."""
    with tempfile.TemporaryDirectory() as name, Run(Path(name), SPARSE, PYTHON, **ONE_STEP) as made:
        return _losses(made, looks)


def _at_own_pace(browser: Browser, looks: tuple[int, ...]) -> list[Figure]:
    """Seconds to the first update that counts, and what became of all."""
    with tempfile.TemporaryDirectory() as name, Run(Path(name), SPARSE, PYTHON[:2]) as made:
        began = time.monotonic()
        tabs = [_join(browser, made, name) for name in TABS]
        pages = [tab.page for tab in tabs]
        for number, page in enumerate(pages):
            page.wait_for_function(_COUNTED, polling=100, timeout=1000 * PATIENCE)
            if not number:
                first = time.monotonic() - began
        every = time.monotonic() - began
        _until(partial(_has_reached, made, looks[-1]), lambda: pages[0].wait_for_timeout(100))
        pages[0].wait_for_timeout(500)  # requests are heard of only while we wait
        sent = sum(url.endswith("/payloads") for tab in tabs for url in tab.requests)
        kept, waiting = _kept(made)
        figures = [
            Figure("from the first click to the first update of a tab that counts", first, "s", 60),
            Figure("from the first click until one of every tab counts", every, "s", 60),
            Figure("updates of tabs", sent, ""),
            Figure("  in the open round", waiting, ""),
            Figure("  kept, of the others", 100 * kept / (sent - waiting), "%", 95, at_least=True),
            Figure("rounds", made.monitor.host.state.round, ""),
            Figure("updates of a lying tab before its exclusion", _lie(made, tabs[-1]), ""),
        ]
        for page in pages:
            page.context.close()
    return figures


_COUNTED = "() => Number(document.querySelector('#live-train').dataset.rounds ?? 0) > 0"


def _join(browser: Browser, made: Run, name: str) -> Visit:
    tab = Visit(browser.new_context().new_page(), f"{made.monitor.web.address}/")
    tab.page.context.on("request", lambda request: tab.requests.append(request.url))
    box = tab.open("live/").locator("#live-train")
    box.get_by_label("Name").fill(name)
    box.get_by_role("button", name="Train in this tab").click()
    return tab


def _kept(made: Run) -> tuple[int, int]:
    """The tabs' updates that closed rounds have taken, and those of the round that is open."""
    ours = {peer for name in TABS for peer in made.identities(name)}
    taken = sum(one.peer in ours for one in made.monitor.host.taken())
    return sum(one.steps for one in made.monitor.books.contributors() if one.name in TABS), taken


def _has_reached(made: Run, samples: int) -> bool:
    return bool(made.monitor.host.state.samples >= samples)


def _losses(
    made: Run, looks: tuple[int, ...], wait: Callable[[], object] = lambda: time.sleep(0.1)
) -> list[tuple[float, int]]:
    """The held-out loss after the first round with so many sequences, and the rounds until then."""
    batches = HeldBatches(SPARSE, made.data, HELD, secret=SECRET)
    losses = []
    for look in looks:
        _until(partial(_has_reached, made, look), wait)
        rounds, weights = made.monitor.host.state.round, made.monitor.host.state.weights.clone()
        losses.append((sum(batches(0, weights)) * SEQUENCES / HELD, rounds))
    return losses


def _lie(made: Run, tab: Visit) -> int:
    """Make a tab flip the signs of its updates; return how many it sent before its exclusion."""
    worker = next(worker for worker in tab.page.workers if "run-volunteer" in worker.url)
    layout = made.monitor.host.swarm.layout
    scales, values, _ = layout.sections
    (liar,) = made.identities(TABS[-1])
    before = len(tab.requests)
    worker.evaluate(LIE, [layout.update_bytes, scales, scales + values - 1])
    _until(
        lambda: made.monitor.judge.state()[liar]["left_out"],
        lambda: tab.page.wait_for_timeout(100),
    )
    return sum(url.endswith("/payloads") for url in tab.requests[before:])


def _until(is_true: Callable[[], bool], wait: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s in vain")
        wait()
