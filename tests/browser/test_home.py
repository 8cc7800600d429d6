"""The home page's swarm: played again when recorded, followed when a run is on."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from templates.pages.index.swarm_figure import discs
from templates.pieces.recorded_run import first_run
from tests.browser.visits import Visitor
from tests.browser.written_run import LiveServer, WrittenRun, serving

pytestmark = pytest.mark.browser

PLACES = """() => [...document.querySelectorAll(".swarm__peer")].map((group) => {
  const disc = group.querySelector("circle");
  return [group.dataset.id, ...["cx", "cy", "r"].map((name) => Number(disc.getAttribute(name)))];
})"""
STATES = """() => Object.fromEntries([...document.querySelectorAll(".swarm__peer")]
  .map((group) => [group.dataset.id, group.dataset.state]))"""


@pytest.fixture
def stage(site: Path, tmp_path: Path) -> Iterator[tuple[LiveServer, WrittenRun]]:
    """A server and the run that it shows."""
    with serving(site, tmp_path) as made:
        yield made


def played_to_the_end(page: Page) -> None:
    expect(page.locator("[data-swarm-play]")).to_have_text("Replay")


def test_the_script_places_volunteers_as_python_did(visit: Visitor) -> None:
    page = visit(reduced_motion="reduce").open()
    played_to_the_end(page)
    expected = [
        [disc.peer["id"], round(disc.x, 1), round(disc.y, 1), round(disc.radius, 1)]
        for disc in discs(first_run().peers)
    ]
    assert page.evaluate(PLACES) == expected


def test_for_those_who_ask_for_calm_nothing_moves_by_itself(visit: Visitor) -> None:
    page = visit(reduced_motion="reduce").open()
    played_to_the_end(page)
    last = first_run().steps[-1]["step"]
    expect(page.locator("[data-swarm-step]")).to_contain_text(f"Step {last} of")
    assert page.locator(".swarm__part").count() == 0


def test_a_recorded_run_is_played_from_its_start_and_can_be_paused(visit: Visitor) -> None:
    page = visit(viewport={"width": 1440, "height": 900}).open()
    button = page.locator("[data-swarm-play]")
    expect(button).to_have_text("Pause")
    button.click()
    expect(button).to_have_text("Resume")
    step = int(page.inner_text("[data-swarm-step]").split()[1].replace(",", ""))
    assert step < first_run().steps[-1]["step"] / 2
    newest = max(first_run().peers, key=lambda peer: datetime.fromisoformat(peer["first_seen"]))
    assert page.evaluate(STATES)[newest["id"]] == "away"
    page.wait_for_timeout(300)
    assert page.inner_text("[data-swarm-step]").split()[1] == str(step)


def test_without_javascript_the_figure_is_whole(visit: Visitor) -> None:
    page = visit(java_script_enabled=False).open()
    assert page.locator(".swarm__peer").count() == len(first_run().peers)
    expect(page.locator("[data-swarm-play]")).to_be_hidden()
    expect(page.locator("[data-swarm-picture]")).to_be_visible()


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
    run.add(1)
    expect(page.locator("[data-swarm-step]")).to_contain_text("Step 4 of")
    assert visitor.errors == []


def test_without_live_data_the_page_stays_as_it_was_built(visit: Visitor) -> None:
    visitor = visit()
    visitor.page.route("**/live/**", lambda route: route.fulfill(status=404, body="gone"))
    page = visitor.open()
    page.wait_for_load_state("networkidle")
    expect(page.locator("[data-run-figure=step]")).to_have_text(str(first_run().steps[-1]["step"]))
    assert visitor.errors == []
