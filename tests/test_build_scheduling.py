"""tests/scheduling.py: which process takes which file of tests."""

import pytest

from tests.scheduling import next_unit, unit_of

SWARM, PAGE, LAW = "tests/training/test_swarm.py", "tests/browser/test_card.py", "tests/pages/a.py"
OTHER = "tests/calculator/test_units.py"


@pytest.mark.parametrize(
    ("running", "taken"),
    [
        ([], SWARM),
        ([SWARM], LAW),
        ([LAW], SWARM),
        ([SWARM, LAW], SWARM),
    ],
)
def test_what_computes_runs_beside_what_waits(running: list[str], taken: str) -> None:
    assert next_unit([OTHER, LAW, PAGE, SWARM], running, {SWARM: 90.0, LAW: 9.0}) == taken


def test_in_a_new_checkout_the_longest_files_are_the_first_too() -> None:
    assert next_unit([PAGE, SWARM], [], {}) == SWARM
    page = "tests/browser/test_every_page.py::test_a_page[about/-390]"
    assert next_unit([page, PAGE], [], {}) == PAGE


def test_when_one_kind_is_used_up_the_other_is_taken() -> None:
    assert next_unit([OTHER, LAW], [LAW], {LAW: 9.0}) == LAW
    assert next_unit([SWARM, PAGE], [SWARM], {PAGE: 300.0}) == PAGE


def test_a_file_and_what_renders_pages_stay_in_one_process_but_visits_are_shared() -> None:
    assert (
        unit_of(f"{LAW}::test_a_table") == unit_of("tests/pages/b.py::test_a_row") == "tests/pages"
    )
    assert unit_of(f"{SWARM}::test_the_loss_falls") == SWARM
    page = "tests/browser/test_every_page.py::test_a_page[about/-390]"
    assert unit_of(page) == page
