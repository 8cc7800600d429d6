"""Fluidity of the live page with a run of 31,250 steps and 10,000 contributors."""

import tempfile
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.chromium import fresh_visit
from benchmarks.figures import Figure, Table, median
from tests.browser.written_run import WrittenRun, serving, write_crowd
from tools.website import SITE

LONGEST_TASK_MS = 50
STEPS, PEOPLE = 31_250, 10_000
CHARTS = ("loss", "volunteers", "speed", "traffic")
DRAWN = "[data-chart=loss] [data-points]"
# The browser names the tasks that hold it up for more than 50 ms.
NOTE_TASKS = """
window.tasks = [];
new PerformanceObserver((list) => {
  for (const {duration} of list.getEntries()) window.tasks.push(duration);
}).observe({type: "longtask", buffered: true});
"""

# What the page itself noted of one of its works, in milliseconds.
NOTED = "(name) => performance.getEntriesByName(name).map((entry) => entry.duration)"
# The time from typing to the new rows, letter by letter.
TYPED = """async (texts) => {
  const field = document.querySelector(".board [name=search]");
  const times = [];
  for (const text of texts) {
    await new Promise(requestAnimationFrame);
    const began = performance.now();
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.offsetHeight;
    times.push(performance.now() - began);
  }
  return times;
}"""


def run(quick: bool) -> Table:
    """Open the page beside a long run, let the run grow, and use the list."""
    updates = 3 if quick else 15
    with (
        tempfile.TemporaryDirectory() as name,
        fresh_visit() as visit,
        serving(SITE, Path(name)) as (server, written),
    ):
        write_crowd(written, STEPS, PEOPLE)
        size = written.progress.stat().st_size + (written.path / "peers.json").stat().st_size
        page = visit.page
        page.set_default_timeout(120_000)
        page.add_init_script(NOTE_TASKS)
        page.goto(f"{server.address}live/")
        page.wait_for_selector(DRAWN)
        opened = float(page.evaluate("performance.now()"))
        first = float(page.evaluate(NOTED, "live: show")[0])
        for chart in CHARTS:
            page.locator(f"[data-chart={chart}]").scroll_into_view_if_needed()
            page.wait_for_selector(f"[data-chart={chart}] [data-points]")
        shown = _updates(page, written, updates)
        tasks = page.evaluate("() => window.tasks")
        typed = page.evaluate(TYPED, ["v", "vo", "volunteer 9", "volunteer 99", ""] * 4)
        drawn = [page.evaluate(NOTED, f"live: {chart}") for chart in CHARTS]
    return Table(
        f"The live page beside {STEPS:,} steps and {PEOPLE:,} contributors",
        [
            Figure("files read at the start", size / 2**20, "MiB"),
            Figure("from address to the first chart", opened, "ms"),
            Figure("figures and rows, the first time", first, "ms"),
            Figure("figures and rows, at a new step", median(shown), "ms"),
            Figure(
                "all four charts, at a new step", sum(median(times[1:]) for times in drawn), "ms"
            ),
            Figure("longest task", max(tasks, default=0.0), "ms", LONGEST_TASK_MS),
            Figure("search in the list, a letter", median(typed), "ms"),
        ],
    )


def _updates(page: Page, written: WrittenRun, count: int) -> list[float]:
    """Append steps one by one; the milliseconds that each took to be shown."""
    for _ in range(count):
        written.add(1)
        page.evaluate("dispatchEvent(new Event('online'))")
        page.get_by_text(f"{written.step:,}", exact=True).first.wait_for()
    times: list[float] = page.evaluate(NOTED, "live: show")
    return times[1:]
