"""Tabs join a real run in Chromium beside Python volunteers: credited, judged, stopped, resumed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from tests.browser.running_run import LIE, Run
from tests.browser.visits import Visitor
from tests.browser.written_run import LiveServer, WrittenRun
from tests.training.processes import wait_for
from training.run.live import PeerState
from training.run.recipes import TINY_SPARSE

pytestmark = pytest.mark.browser


ROUND_SECONDS = 0.1  # of local steps: a batch or two
ROUNDS = 2  # of each tab
PHONE = {"width": 390, "height": 844}  # on which no chart is in sight


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Iterator[Run]:
    assert site
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # in each of the run's own threads
    with Run(tmp_path, TINY_SPARSE, ["alice", "bob"], seconds=ROUND_SECONDS) as made:
        yield made
    torch.set_num_threads(before)


def box_of(page: Page) -> Locator:
    """The part of the live page in which a tab trains."""
    return page.locator("#live-train")


def counted(page: Page) -> int:
    """Updates of a tab that rounds took, as its page says."""
    return int(box_of(page).get_attribute("data-rounds") or 0)


def test_three_tabs_train_beside_two_python_volunteers(visit: Visitor, run: Run) -> None:
    names = ["honest tab", "another tab", "lying tab"]
    address = f"{run.monitor.web.address}/"
    tabs = {name: visit(address, viewport=PHONE) for name in names}
    for name, tab in tabs.items():
        box = box_of(tab.open("live/"))
        box.get_by_label("Name").fill(name)
        box.get_by_role("button", name="Train in this tab").click()
    for tab in tabs.values():
        wait_for("a tab's updates to count", lambda tab=tab: counted(tab.page) >= ROUNDS)
    for tab in tabs.values():
        uploads = sum(url.endswith("/payloads") for url in tab.requests)
        lost = uploads - 1 - counted(tab.page)  # one may be on its way
        assert lost <= max(1, 0.05 * uploads)
    people = {one.name: one for one in run.monitor.live.read_peers()}
    assert {"alice", "bob", *names} <= people.keys()
    assert all(people[name].samples >= 8 * people[name].steps > 0 for name in names)

    honest, another, lying = (tab.page for tab in tabs.values())
    another.close()
    worker = next(worker for worker in lying.workers if "run-volunteer" in worker.url)
    layout = run.monitor.host.swarm.layout
    scales, values, _places = layout.sections
    worker.evaluate(LIE, [layout.update_bytes, scales, scales + values - 1])
    (liar,), identities = (run.identities(name) for name in ("lying tab", "honest tab"))
    records = run.monitor.judge.state
    wait_for("the liar to be left out", lambda: records()[liar]["left_out"])
    assert not any(records()[peer]["left_out"] for peer in identities)
    expect(box_of(lying)).to_contain_text(re.compile(r"and rejected \d+, which did not help"))
    lying.close()

    before = counted(honest)
    honest.reload()
    wait_for("the tab to go on after a reload", lambda: counted(honest) > before)
    assert run.identities("honest tab") == identities
    box_of(honest).get_by_role("button", name="Stop").click()
    expect(box_of(honest).get_by_role("status")).to_have_text(re.compile("^Stopped"))
    (left,) = identities
    wait_for("its goodbye", lambda: run.monitor.host.reports()[left].state == PeerState.LEFT)
    assert not any(tab.errors for tab in tabs.values())


def test_a_tab_refuses_what_is_too_large_and_goes_to_the_host_for_what_is_not(
    visit: Visitor, stage: tuple[LiveServer, WrittenRun]
) -> None:
    server, written = stage
    written.open()
    written.add(3)
    page = visit(address=server.address).page
    box = box_of(page)
    link = box.get_by_role("link", name="Train in a tab at the run's host")
    show(page, server, written, needed=3 * 2**30)
    words = re.compile("takes 3.00\\sGiB, as the calculator counts.* at most 1.00\\sGiB")
    expect(box.get_by_role("status")).to_have_text(words)
    expect(link).to_be_hidden()
    expect(box.get_by_role("button")).to_be_hidden()
    show(page, server, written, needed=2**25)
    expect(link).to_have_attribute("href", "https://run.example/live/?run=watched#live-train")
    expect(box.get_by_role("button")).to_be_hidden()


def show(page: Page, server: LiveServer, written: WrittenRun, needed: int) -> None:
    """Open the page of a run whose host lets a tab take 1 GiB, of which it needs so many bytes."""
    card = written.path / "run.json"
    tab = {"address": "https://run.example", "memory_bytes": needed, "most_bytes": 2**30}
    card.write_text(json.dumps(json.loads(card.read_text()) | {"tab": tab}))
    page.goto(f"{server.address}live/")
