"""Time that the page takes to find what would make a step fit, and its responsiveness."""

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

from benchmarks.chromium import ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table, median

TARGET_MILLISECONDS = 100.0
# from a model that takes every option below, to each of these
FIRST = "gpt2-s"


@dataclass(frozen=True)
class Question:
    """A model that a visitor chooses, where the form already has some other choices."""

    title: str
    model: str
    choices: str


QUESTIONS = (
    Question("GPT-2 Large on a T4", "gpt2-l", "gpu=t4"),
    Question(
        "Qwen3-8B, LoRA, on an RTX 4090",
        "Qwen/Qwen3-8B",
        "gpu=rtx-4090&lora=16&lora_targets=all-linear",
    ),
    Question(
        "Llama 3.1 70B on 8 A100s",
        "meta-llama/Llama-3.1-70B",
        "gpu=a100-80&gpus=8&data_parallel=fsdp&precision=mixed",
    ),
    Question("DALL-E 12B on a T4", "dalle-12b", "gpu=t4"),
    Question("T5-11B on a T4", "t5-11b", "gpu=t4"),
)

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
        for question in QUESTIONS:
            with fresh_visit() as visit:
                page = visit.page
                page.set_default_timeout(60_000)
                page.goto(f"{address}calculator/?model={FIRST}&batch_size=2&{question.choices}")
                page.wait_for_selector(ANSWERED)
                figures += _figures(page, question, 5 if quick else 20)
    return Table("From a change to the verdict and to what would make it fit", figures)


def _figures(page: Page, question: Question, count: int) -> list[Figure]:
    first: list[float] = page.evaluate(CHANGE, ["model", question.model])
    again: list[Any] = [
        page.evaluate(CHANGE, ["batch_size", str(3 + number)]) for number in range(count)
    ]
    during: list[float] = page.evaluate(EDIT_WHILE_SEARCHING, 3 * count)
    verdicts, advised = zip(*again, strict=True)
    title = question.title
    return [
        Figure(f"{title}: verdict, first time", first[0], "ms", TARGET_MILLISECONDS),
        Figure(f"{title}: advice, first time", first[1], "ms"),
        Figure(f"{title}: verdict, again (median)", median(verdicts), "ms", TARGET_MILLISECONDS),
        Figure(f"{title}: advice, again (median)", median(advised), "ms", TARGET_MILLISECONDS),
        Figure(f"{title}: figures of an edit during the search", median(during), "ms"),
        Figure(f"{title}: the same, longest", max(during), "ms"),
    ]
