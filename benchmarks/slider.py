"""Time from a slider's movement to the new figures in the page, and to the whole answer."""

from benchmarks.chromium import ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table, median, percentile

FRAME_MILLISECONDS = 16.7
SETTLED = "#calculator-answer[aria-busy=false]"

# One movement a frame, each waited for: the time from the event to the changed page.
ONE_BY_ONE = """async (count) => {
  const slider = document.querySelector("input[type=range][name=batch_size]");
  const answer = document.querySelector("#calculator-answer");
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  const span = Math.min(64, Number(slider.max) - Number(slider.min));
  for (let i = 0; i < count; i++) {
    await frame();
    const changed = new Promise((resolve) => {
      const observer = new MutationObserver(() => { observer.disconnect(); resolve(); });
      observer.observe(answer, { attributeFilter: ["data-figures-id"] });
    });
    const began = performance.now();
    slider.value = String(Number(slider.min) + ((i + 1) % span));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await changed;
    times.push(performance.now() - began);
  }
  return times;
}"""

# A drag: one movement a frame, not waited for. How many frames saw new figures?
DRAG = """async (count) => {
  const slider = document.querySelector("input[type=range][name=batch_size]");
  const answer = document.querySelector("#calculator-answer");
  const span = Math.min(64, Number(slider.max) - Number(slider.min));
  const before = Number(answer.dataset.figuresId ?? 0);
  for (let i = 0; i < count; i++) {
    await new Promise(requestAnimationFrame);
    slider.value = String(Number(slider.min) + ((i + 1) % span));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  return (Number(answer.dataset.figuresId ?? 0) - before) / count;
}"""

# Single movements: the time from the event to the answer with the allocator's simulation.
WHOLE = """async (count) => {
  const slider = document.querySelector("input[type=range][name=batch_size]");
  const answer = document.querySelector("#calculator-answer");
  const times = [];
  for (let i = 0; i < count; i++) {
    const changed = new Promise((resolve) => {
      const observer = new MutationObserver(() => { observer.disconnect(); resolve(); });
      observer.observe(answer, { attributeFilter: ["data-answer-id"] });
    });
    const began = performance.now();
    slider.value = String(Number(slider.min) + 64 + i); // which no movement before asked for
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await changed;
    times.push(performance.now() - began);
  }
  return times;
}"""


def run(quick: bool) -> Table:
    """Move the slider of the real page."""
    count = 60 if quick else 300
    with site_with_bare_pages() as address, fresh_visit() as visit:
        page = visit.page
        page.set_default_timeout(60_000)
        page.goto(f"{address}calculator/")
        page.wait_for_selector(ANSWERED)
        page.evaluate(ONE_BY_ONE, 30)  # the browser compiles what runs often
        times = page.evaluate(ONE_BY_ONE, count)
        answered = page.evaluate(DRAG, count)
        page.wait_for_selector(SETTLED)
        whole = page.evaluate(WHOLE, count // 10)
    return Table(
        f"From slider to figures ({count} movements)",
        [
            Figure("median", median(times), "ms"),
            Figure("95th percentile", percentile(times, 0.95), "ms", FRAME_MILLISECONDS),
            Figure("longest", max(times), "ms"),
            Figure("frames of a drag with new figures", 100 * answered, "%"),
            Figure("whole answer after one movement, median", median(whole), "ms"),
        ],
    )
