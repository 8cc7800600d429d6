"""The core journeys in Firefox, where the machine has one."""

from collections.abc import Iterator

import pytest

from templates.pieces.commands import places
from tests.browser.firefox import Firefox, find_firefox, running_firefox
from tests.calculator.plans import ask
from tools.source import find_source

pytestmark = pytest.mark.browser

SETTLED = "document.querySelector(\"#calculator-answer[aria-busy='false']\") !== null"
TYPE = """(() => {
  const field = document.querySelector("#batch_size");
  field.value = "2";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  return true;
})()"""

# The numbers of the tabs whose text is visible.
SHOWN = """[...document.querySelectorAll(".tabbed-block")]
  .flatMap((block, number) => (block.checkVisibility() ? [number] : []))"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """A running Firefox."""
    program = find_firefox()
    if program is None:
        pytest.skip("This machine has no Firefox (Debian: apt install firefox-esr).")
    with running_firefox(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


def test_the_calculator_answers_as_python_does(firefox: Firefox, site_address: str) -> None:
    firefox.open(f"{site_address}calculator/?model=bert-large&batch_size=3")
    firefox.wait_for(SETTLED)
    for size in ("3", "2"):
        firefox.wait_for(
            "document.querySelector('#calculator-command')"
            f".textContent.includes('--batch-size {size}')"
        )
        firefox.wait_for(SETTLED)
        answer = ask("answer", model="bert-large", batch_size=size)["value"]
        assert firefox.text("#calculator-verdict") == answer["verdict"]["text"]
        firefox.evaluate(TYPE)


def test_the_live_page_draws_its_charts(firefox: Firefox, site_address: str) -> None:
    firefox.open(f"{site_address}live/")
    firefox.wait_for("Number(document.querySelector('[data-live=step]').textContent) > 0")
    firefox.evaluate("dispatchEvent(new Event('pointermove'))")  # the charts wait for a touch
    firefox.wait_for("document.querySelector('[data-chart=loss] .main-svg') !== null")
    drawn = "Number(document.querySelector('[data-chart=loss] [data-plot]').dataset.points)"
    assert firefox.evaluate(drawn) > 100
    assert firefox.evaluate("document.querySelector('[data-live=problems]').textContent === ''")


def test_each_tab_of_the_join_guide_shows_its_own_commands(
    firefox: Firefox, site_address: str
) -> None:
    firefox.open(f"{site_address}join/")
    for number, place in enumerate(places(find_source())):
        label = f"document.querySelectorAll('.tabbed-labels > label')[{number}]"
        assert firefox.evaluate(f"{label}.textContent.trim()") == place.title
        firefox.evaluate(f"{label}.click()")
        assert firefox.evaluate(SHOWN) == [number]
        panel = firefox.evaluate(f"document.querySelectorAll('.tabbed-block')[{number}].innerText")
        assert all(line in panel for line in place.lines)


def test_a_second_visit_answers_through_the_service_worker(
    firefox: Firefox, site_address: str
) -> None:
    firefox.open(f"{site_address}calculator/")
    firefox.wait_for(SETTLED)
    firefox.wait_for("Boolean(document.documentElement.dataset.kept)")
    firefox.open(f"{site_address}calculator/?batch_size=3")
    assert firefox.evaluate("navigator.serviceWorker.controller !== null")
    firefox.wait_for(
        "document.querySelector('#calculator-command').textContent.includes('--batch-size 3')"
    )
    firefox.wait_for(SETTLED)
