"""'Security' shows what Python computes, and commands and fields that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calculator.attacks import Attack
from calculator.comparison import Start
from calculator.plane import MOST_BAD
from templates import defence
from templates.render import render_page
from templates.security_page import ATTACKS, MOST_ITERATIONS, context
from tests.pages.tables import rows_of


@pytest.fixture(scope="module")
def page() -> str:
    return render_page("security")


def test_the_buttons_are_the_attacks_of_the_calculator() -> None:
    assert [preset.key for preset in ATTACKS] == [*Attack]


def test_the_choices_of_the_start_are_the_calculators(page: str) -> None:
    (select,) = re.findall(r'<select id="plane-start".*?</select>', page)
    assert re.findall(r'<option value="(\w+)"', select) == [*Start]


def test_the_picture_has_a_place_for_every_bad_volunteer_and_leg(page: str) -> None:
    assert page.count("data-bad ") == MOST_BAD
    assert page.count("data-leg") == MOST_ITERATIONS
    value: Any = context()["value"]
    assert page.count("data-off") == MOST_BAD - 2 + MOST_ITERATIONS - value["iterations"]


def test_what_is_drawn_is_what_the_protocol_answers(page: str) -> None:
    value: Any = context()["value"]
    for place in [*value["honest"], *value["bad"], *value["results"].values()]:
        assert f'x="{round(place["left"], 3)}%" y="{round(place["top"], 3)}%"' in page
    for name, text in value["figures"].items():
        for shown in re.findall(rf'data-figure="{re.escape(name)}">([^<]*)<', page):
            assert shown == text


def test_the_command_that_bans_is_one_of_the_authoritys(page: str) -> None:
    command = pytest.importorskip("training.authority.command", reason="needs 'training'")
    (told,) = re.findall(r"python -m training authority (RUN ban USER --reason) ", page)
    options = command.make_parser().parse_args([*told.split(), "spam"])
    assert (options.action, options.user, options.reason) == ("ban", "USER", "spam")


def test_access_lasts_as_long_as_told(page: str) -> None:
    admission = pytest.importorskip("training.authority.admission", reason="needs 'training'")
    assert admission.Policy.__dataclass_fields__["lifetime"].default == 10 * 60
    assert page.count("ten minutes") == 2


def test_the_command_that_rolls_back_exists(page: str) -> None:
    from training.__main__ import MODULES

    (told,) = re.findall(r"`?python -m training (\w+) RUN STEP", page)
    assert told in MODULES


def test_the_setting_that_is_named_is_the_recipes(page: str) -> None:
    from training.recipes import SwarmSettings

    assert "aggregation=Aggregation.CENTERED_CLIP" in page
    assert SwarmSettings.__dataclass_fields__["aggregation"].default == "mean"
    assert SwarmSettings.__dataclass_fields__["clip_iterations"].default == 3
    assert "three iterations" in page


def write_measurement(path: Path) -> None:
    figures = [
        {"name": f"{way}, {attack}: {what}", "value": value, "unit": ""}
        for way, factor in (("mean", 100.0), ("centered-clip", 1.0))
        for attack in defence.ATTACKS
        for what, value in (
            ("error of the average", 0.01 * factor),
            ("held-out loss after 40 steps", 1.5 + factor),
            ("exchange", 0.5 * factor),
            ("sent by all", 10_000.0),
        )
    ]
    title = "9 peers, 2 of them bad where not all are honest; 40 steps"
    words = {"date": "2026-11-21T11:00:00+00:00"}
    path.write_text(
        json.dumps({"machine": words, "tables": [{"title": title, "figures": figures}]}), "utf-8"
    )


def test_measured_figures_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "defence.json"
    assert defence.read(path) is None
    write_measurement(path)
    found = defence.read(path)
    assert found is not None
    assert found.rows[1] == ["Gradients times 1,000", "100 %", "101.50", "1.0 %", "2.50"]
    assert defence.in_per_cent(float("inf")) == "not finite"
    assert (found.seconds, found.megabytes) == (("50.00 s", "0.50 s"), ("10.00 MB", "10.00 MB"))


def test_what_was_measured_is_on_the_page(page: str) -> None:
    found = defence.read()
    assert ("We measured it" in page) == (found is not None)
    for row in found.rows if found else []:
        assert row in rows_of(page)
