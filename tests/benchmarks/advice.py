"""Time that the page takes to find what would make a step fit, and its responsiveness."""

from typing import Any

from playwright.sync_api import Page

from tests.benchmarks.chromium import ANSWERED, fresh_visit, site_with_bare_pages
from tests.benchmarks.figures import Figure, Table, median

MODELS = ("gpt2-l", "t5-11b", "dalle-12b")
TARGET_MILLISECONDS = 100.0
FIRST = "bert-base"

# From a change of the form to the new figures, and to the end of the search for advice.
CHANGE = """async ([field, value]) => {
  const form = document.querySelector("#calculator-form");
  const advice = document.querySelector("#calculator-advice");
  const answer = document.querySelector("#calculator-answer");
  const seen = (element, names, holds) => new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (!holds()) return;
      observer.disconnect();
      resolve(performance.now());
    });
    observer.observe(element, { attributeFilter: names });
  });
  const before = answer.dataset.answerId;
  const began = performance.now();
  const control = form.querySelector(`#${field}`);
  control.value = value;
  if (field === "model") form.querySelector(`#model-list [data-value="${value}"]`).click();
  else control.dispatchEvent(new Event("input", { bubbles: true }));
  const figures = seen(answer, ["data-answer-id"], () => answer.dataset.answerId !== before);
  const done = seen(advice, ["aria-busy"], () => advice.ariaBusy === "false");
  return [await figures - began, await done - began];
}"""

# An edit in the middle of a search: how long its figures take.
EDIT_WHILE_SEARCHING = """async (count) => {
  const control = document.querySelector("#batch_size");
  const answer = document.querySelector("#calculator-answer");
  const times = [];
  for (let i = 0; i < count; i++) {
    const changed = new Promise((resolve) => {
      const observer = new MutationObserver(() => { observer.disconnect(); resolve(); });
      observer.observe(answer, { attributeFilter: ["data-answer-id"] });
    });
    const began = performance.now();
    control.value = String(2 + (i % 50));
    control.dispatchEvent(new Event("input", { bubbles: true }));
    await changed;
    times.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 5 + (7 * i) % 20));
  }
  return times;
}"""


def run(quick: bool) -> Table:
    """Choose models in the real page, for the first time and then again with another batch."""
    figures = []
    with site_with_bare_pages() as address:
        for model in MODELS:
            with fresh_visit() as visit:
                page = visit.page
                page.set_default_timeout(60_000)
                page.goto(f"{address}calculator/?model={FIRST}&gpu=t4&batch_size=2")
                page.wait_for_selector(ANSWERED)
                figures += _figures(page, model, 5 if quick else 20)
    return Table("From a change to what would make it fit, on a T4", figures)


def _figures(page: Page, model: str, count: int) -> list[Figure]:
    first: list[float] = page.evaluate(CHANGE, ["model", model])
    again: list[Any] = [
        page.evaluate(CHANGE, ["batch_size", str(3 + number)]) for number in range(count)
    ]
    during: list[float] = page.evaluate(EDIT_WHILE_SEARCHING, 3 * count)
    advised = [both[1] for both in again]
    return [
        Figure(f"{model}: figures, first time", first[0], "ms"),
        Figure(f"{model}: advice, first time", first[1], "ms"),
        Figure(f"{model}: advice, again (median)", median(advised), "ms", TARGET_MILLISECONDS),
        Figure(f"{model}: figures of an edit during the search", median(during), "ms"),
        Figure(f"{model}: the same, longest", max(during), "ms"),
    ]
