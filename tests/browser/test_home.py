"""The home page: its small calculator, and its swarm, replayed or followed."""

from datetime import datetime
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Page, expect

from calculator.catalog import GPUS
from templates.pages.index.fit import ANSWERS, FIRST_MODEL, MODELS, answer
from templates.pieces.recorded_run import first_run
from tests.browser.visits import Visitor, open_calculator, settled
from tests.browser.written_run import LiveServer, WrittenRun
from tests.calculator.plans import ask

pytestmark = pytest.mark.browser

STATES = """() => Object.fromEntries([...document.querySelectorAll(".swarm__peer")]
  .map((group) => [group.dataset.id, group.dataset.state]))"""

# Twenty frames: the run would be further.
PAINT = """() => new Promise((resolve) => {
  let left = 20;
  const paint = () => { left -= 1; left ? requestAnimationFrame(paint) : resolve(); };
  paint();
})"""


def test_without_javascript_a_table_answers_and_the_swarm_is_what_the_script_draws(
    visit: Visitor,
) -> None:
    built = visit(java_script_enabled=False).open()
    assert built.locator(".swarm__peer").count() == len(first_run().peers)
    expect(built.locator("[data-swarm-play]")).to_be_hidden()
    expect(built.locator("[data-swarm-picture]")).to_be_visible()
    expect(built.locator(".fit__controls")).to_be_hidden()
    expect(built.locator(".fit tbody tr")).to_have_count(len(MODELS))
    expect(built.locator(".fit tbody tr").first).to_be_visible()
    page = visit(reduced_motion="reduce").open()
    expect(page.locator("[data-swarm-play]")).to_have_text("Replay")
    drawn, plain = (
        one.locator(".swarm__drawing").evaluate("(drawing) => drawing.outerHTML")
        for one in (page, built)
    )
    assert drawn == plain
    last = first_run().steps[-1]["step"]
    expect(page.locator("[data-swarm-step]")).to_contain_text(f"Step {last} of")
    assert page.locator(".swarm__part").count() == 0  # nothing moves for those who ask for calm


def test_a_recorded_run_is_played_from_its_start_and_can_be_paused(visit: Visitor) -> None:
    page = visit(viewport={"width": 1440, "height": 900}).open()
    button = page.locator("[data-swarm-play]")
    expect(button).to_have_text("Replay")
    page.locator(".swarm__drawing").scroll_into_view_if_needed()
    expect(button).to_have_text("Pause")
    button.click()
    expect(button).to_have_text("Resume")
    step = int(page.inner_text("[data-swarm-step]").split()[1].replace(",", ""))
    assert step < first_run().steps[-1]["step"] / 2
    newest = max(first_run().peers, key=lambda peer: datetime.fromisoformat(peer["first_seen"]))
    assert page.evaluate(STATES)[newest["id"]] == "away"
    page.evaluate(PAINT)
    assert page.inner_text("[data-swarm-step]").split()[1] == str(step)


def test_a_run_that_is_on_is_followed(visit: Visitor, stage: tuple[LiveServer, WrittenRun]) -> None:
    server, run = stage
    run.open()
    run.add(3)
    run.write_people("ada", "ben")
    visitor = visit(server.address)
    page = visitor.open()
    expect(page.locator("[data-run-state]")).to_contain_text("Running")
    expect(page.locator("[data-run-figure=volunteers]")).to_have_text("2")
    assert page.locator(".swarm__peer").count() == 2
    assert page.inner_text("[data-swarm-source]") == ""
    expect(page.locator("[data-run-kind]")).to_have_text("A run in progress")
    run.add(1)
    expect(page.locator("[data-swarm-step]")).to_contain_text("Step 4 of")
    assert visitor.errors == []


SHOWN = """() => [...document.querySelectorAll(".fit__ways > li:not([hidden])")].map((row) => [
  row.querySelector("[data-fit-need]").textContent,
  row.querySelector("[data-fit-verdict]").textContent,
  new URL(row.querySelector("a").href).search.slice(1),
])"""
WIDTHS = """() => [...document.querySelectorAll(".fit__ways > li:not([hidden])")].map((row) =>
  [...row.querySelectorAll(".bar__part")].reduce((sum, part) => sum + part.offsetWidth, 0))"""


def choose(page: Page, model: str, gpu: str, batch: str) -> None:
    """Set the three controls of the small calculator."""
    page.locator("#fit-model").select_option(model)
    page.locator("#fit-gpu").select_option(gpu)
    page.locator("#fit-batch").select_option(label=batch)


def test_the_small_calculator_obeys_the_keyboard_and_shows_python_s_answers(
    visit: Visitor,
) -> None:
    visitor = visit()
    page = visitor.open_all()
    before = page.evaluate(WIDTHS)
    page.locator("#fit-gpu").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#fit-gpu")).to_have_value("rtx-3060")
    expect(page.locator("[data-fit-memory]")).to_have_text("12.0 GiB")
    # Less memory: the same bytes take a larger share of the box, up to the figure's end.
    assert page.evaluate(WIDTHS)[-1] >= before[-1]
    page.keyboard.press("Tab")
    expect(page.locator("#fit-batch")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="Fits")).to_be_visible()
    for model, gpu, batch in (
        (FIRST_MODEL, "rtx-3060", "4"),
        ("dalle-together", "rtx-4090", "16"),
        ("Qwen/Qwen3-14B", "a100-80", "2"),
    ):
        choose(page, model, gpu, batch)
        rows = page.evaluate(SHOWN)
        assert len(rows) >= 3
        for need, verdict, query in rows:
            state = dict(parse_qsl(query))
            assert (state["model"], state["gpu"], state["batch_size"]) == (model, gpu, batch)
            value = ask("answer", **state)["value"]
            assert need == value["figures"]["monitor.report.shown"]
            assert verdict == value["verdict"]["state"]
        expected = ANSWERS[answer(model, int(batch), GPUS[gpu])]
        expect(page.locator("[data-fit-answer]")).to_have_text(expected)
        assert expected.startswith("Fits") is ("fits" in [verdict for _, verdict, _ in rows])
    assert [address for address in visitor.requests if "pyodide" in address] == []
    assert visitor.errors == []


@pytest.mark.one_python
def test_a_row_of_the_small_calculator_opens_the_full_one_in_its_state(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor, "model=bert-base")
    page.locator(".site-footer").get_by_role("link", name="Home").click()
    expect(page.locator("#fit-model")).to_be_enabled()
    visitor.rest()
    choose(page, "gpt2-xl", "rtx-4090", "2")
    need, verdict, _ = page.evaluate(SHOWN)[1]
    page.locator(".fit__ways a").nth(1).click()
    settled(page)
    expect(page.locator("#calculator-verdict")).to_contain_text(verdict.capitalize())
    expect(page.locator("#calculator-verdict")).to_contain_text(f"Needs {need}")
    expect(page.locator("#model")).to_have_value("gpt2-xl")


def test_without_live_data_the_page_stays_as_built_and_without_its_table_the_calculator_says_so(
    visit: Visitor,
) -> None:
    visitor = visit()
    for gone in ("**/live/**", "**/fit.json"):
        visitor.page.route(gone, lambda route: route.fulfill(status=404, body="gone"))
    page = visitor.open_all()
    expect(page.locator("[data-run-figure=step]")).to_have_text(str(first_run().steps[-1]["step"]))
    built = page.inner_text("[data-fit-answer]")
    page.locator("#fit-batch").select_option(label="8")
    expect(page.locator("[data-fit-answer]")).to_contain_text("did not load")
    assert built.startswith("Fits")
    assert visitor.errors == []
