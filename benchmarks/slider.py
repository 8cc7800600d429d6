"""Time from a slider's movement to the new figures in the page, and to the whole answer."""

from benchmarks.chromium import ANSWERED, fresh_visit, site_with_bare_pages
from benchmarks.figures import Figure, Table, median, percentile

FRAME_MILLISECONDS = 16.7
SETTLED = "#calculator-answer[aria-busy=false]"

# A movement to a new state: along the stops of the batch, one stop of the length, and back.
MOVE = """
  const answer = document.querySelector("#calculator-answer");
  const [batch, length] = ["batch_size", "sequence_length"].map(
    (name) => document.querySelector(`input[type=range][name=${name}]`));
  const stops = Number(batch.max) + 1;
  const move = (i) => {
    const round = Math.floor(i / stops), place = i % stops;
    const slider = place ? batch : length;
    const back = round % 2 ? stops - 1 - place : place;
    slider.value = String(place ? back : round % (Number(length.max) + 1));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const changed = (name) => new Promise((resolve) => {
    const observer = new MutationObserver(() => { observer.disconnect(); resolve(); });
    observer.observe(answer, { attributeFilter: [name] });
  });
"""

# One movement a frame, each waited for: the time from the event to a change of the answer's number.
EACH = f"""async ([first, count, name]) => {{ {MOVE}
  const times = [];
  for (let i = first; i < first + count; i++) {{
    await new Promise(requestAnimationFrame);
    const shown = changed(name);
    const began = performance.now();
    move(i);
    await shown;
    times.push(performance.now() - began);
  }}
  return times;
}}"""
# Its numbers: of figures, and of answers with the simulated allocator.
FIGURES, WHOLE = "data-figures-id", "data-answer-id"

# A drag: one movement a frame, not waited for. How many frames saw new figures?
DRAG = f"""async (count) => {{ {MOVE}
  const before = Number(answer.dataset.figuresId);
  for (let i = 0; i < count; i++) {{
    await new Promise(requestAnimationFrame);
    move(i);
  }}
  await new Promise((resolve) => setTimeout(resolve, 200));
  return (Number(answer.dataset.figuresId) - before) / count;
}}"""


def run(quick: bool) -> Table:
    """Move the slider of the real page."""
    count = 60 if quick else 300
    with site_with_bare_pages() as address, fresh_visit() as visit:
        page = visit.page
        page.set_default_timeout(60_000)
        page.goto(f"{address}calculator/")
        page.wait_for_selector(ANSWERED)
        page.evaluate(EACH, [0, 30, FIGURES])  # the browser compiles what runs often
        times = page.evaluate(EACH, [30, count, FIGURES])
        answered = page.evaluate(DRAG, count)
        page.wait_for_selector(SETTLED)
        whole = page.evaluate(EACH, [0, count // 10, WHOLE])
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
