"""tests/scheduling.py: which process takes which file of tests."""

import pytest

from tests.scheduling import next_unit, unit_of

SWARM, PAGE, LAW = "tests/training/test_swarm.py", "tests/browser/test_card.py", "tests/pages/a.py"
OTHER, NUMBERS = "tests/calculator/test_units.py", "tests/calculator/test_plan.py"


@pytest.mark.parametrize(
    ("before", "running", "taken"),
    [
        ("", [], SWARM),
        ("", [SWARM], PAGE),
        ("", [SWARM, PAGE], LAW),
        (OTHER, [SWARM], NUMBERS),
        (OTHER, [SWARM, LAW], NUMBERS),
        (SWARM, [LAW], SWARM),
        (PAGE, [PAGE, LAW], PAGE),
    ],
)
def test_a_process_stays_in_its_folder_and_begins_where_no_other_is(
    before: str, running: list[str], taken: str
) -> None:
    seconds = {SWARM: 90.0, LAW: 9.0}
    assert next_unit([NUMBERS, LAW, PAGE, SWARM], before, running, seconds) == taken


def test_a_process_whose_folder_is_done_helps_with_the_longest_files_of_the_others() -> None:
    assert next_unit([SWARM, PAGE], OTHER, [SWARM, PAGE], {PAGE: 300.0}) == PAGE


def test_in_a_new_checkout_the_longest_files_are_the_first_too() -> None:
    assert next_unit([PAGE, SWARM], "", [], {}) == SWARM
    page = "tests/browser/test_every_page.py::test_a_page[about/-390]"
    assert next_unit([page, PAGE], "", [], {}) == PAGE


def test_a_file_and_what_renders_pages_stay_in_one_process_but_visits_are_shared() -> None:
    assert (
        unit_of(f"{LAW}::test_a_table") == unit_of("tests/pages/b.py::test_a_row") == "tests/pages"
    )
    assert unit_of(f"{SWARM}::test_the_loss_falls") == SWARM
    page = "tests/browser/test_every_page.py::test_a_page[about/-390]"
    assert unit_of(page) == page
