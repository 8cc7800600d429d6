"""benchmarks/figures.py: how measured figures are summed up and shown."""

import json
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Table, percentile, write_json
from benchmarks.lighthouse import request_count


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 0.95, 3.0),
        ([float(n) for n in range(1, 101)], 0.95, 95.0),
        ([5.0, 1.0, 3.0], 0.5, 3.0),
        ([5.0, 1.0, 3.0], 1.0, 5.0),
    ],
)
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == expected


@pytest.mark.parametrize(("value", "word"), [(16.7, "met"), (16.8, "MISSED")])
def test_a_target_is_met_up_to_its_own_value(value: float, word: str) -> None:
    assert Figure("slider", value, "ms", 16.7).verdict().endswith(word)


@pytest.mark.parametrize(("value", "word"), [(98, "met"), (97.9, "MISSED")])
def test_a_score_is_met_from_its_target_up(value: float, word: str) -> None:
    assert Figure("score", value, "", 98, at_least=True).verdict().endswith(word)


def test_a_figure_without_a_target_has_no_verdict() -> None:
    assert Figure("bytes", 1.0, "bytes").verdict() == ""


def test_recorded_figures_carry_their_command_and_machine(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    tables = {"slider": Table("title", [Figure("name", 1.5, "ms")])}
    write_json(path, tables, "build.py bench slider", {"cores": 2})
    assert json.loads(path.read_text()) == {
        "version": 1,
        "command": "build.py bench slider",
        "machine": {"cores": 2},
        "tables": [
            {
                "part": "slider",
                "title": "title",
                "figures": [
                    {"name": "name", "value": 1.5, "unit": "ms", "target": None, "at_least": False}
                ],
            }
        ],
    }


def test_a_picture_inside_a_style_is_no_request() -> None:
    urls = ["http://localhost/", "http://localhost/site.css", "data:image/svg+xml,<svg/>"]
    details = {"items": [{"url": url} for url in urls]}
    assert request_count({"audits": {"network-requests": {"details": details}}}) == 2
