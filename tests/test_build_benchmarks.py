"""benchmarks/figures.py: how measured figures are summed up and shown."""

import json
import re
from pathlib import Path

from benchmarks.__main__ import KNOWN, recorded, stale
from benchmarks.figures import Figure, Table, percentile, write_part
from benchmarks.lighthouse import request_count
from tools.console import ROOT


def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed() -> None:
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([float(n) for n in range(1, 101)], 0.95) == 95.0
    assert percentile([5.0, 1.0, 3.0], 0.5) == 3.0
    assert percentile([5.0, 1.0, 3.0], 1.0) == 5.0


def test_a_target_is_met_up_to_its_own_value_and_a_score_from_it_up() -> None:
    assert Figure("slider", 16.7, "ms", 16.7).verdict() == "target 16.7 ms: met"
    assert Figure("slider", 16.8, "ms", 16.7).verdict().endswith(": MISSED")
    assert Figure("score", 98, "", 98, at_least=True).verdict().endswith(": met")
    assert Figure("score", 97.9, "", 98, at_least=True).verdict().endswith(": MISSED")
    assert Figure("bytes", 1.0, "bytes").verdict() == ""


def test_a_part_is_written_beside_the_others_with_its_own_machine(tmp_path: Path) -> None:
    path = tmp_path / "recorded.json"
    table = Table("title", [Figure("name", 1.5, "ms")])
    write_part(path, "slider", table, "build.py bench slider", {"cores": 1})
    write_part(path, "fit", Table("fit", []), "build.py bench fit", {"cores": 2})
    write_part(path, "slider", table, "build.py bench slider", {"cores": 4})
    figure = {"name": "name", "value": 1.5, "unit": "ms", "target": None, "at_least": False}
    rest = {"title": "title", "command": "build.py bench slider", "machine": {"cores": 4}}
    parts = json.loads(path.read_text())["parts"]
    assert list(parts) == ["fit", "slider"]
    assert parts["slider"] == {"figures": [figure], **rest}
    assert parts["fit"]["machine"] == {"cores": 2}


def test_a_part_is_stale_if_what_it_measures_has_changed_since() -> None:
    part = {"machine": {"date": "2020-01-01T00:00:00+00:00"}}
    (line,) = stale({"lamb": part})
    assert re.fullmatch(
        r"lamb, measured 2020-01-01: \d+ commits? since, the last 20\d\d-\d\d-\d\d, in .+", line
    )
    assert list(stale({"lamb": {"machine": {"date": "2099-01-01T00:00:00+00:00"}}})) == []


def test_every_recorded_part_can_be_measured_again_and_names_what_it_measures() -> None:
    parts = recorded()
    assert set(parts) <= set(KNOWN)
    assert [path for paths in KNOWN.values() for path in paths if not (ROOT / path).exists()] == []


def test_a_picture_inside_a_style_is_no_request() -> None:
    urls = ["http://localhost/", "http://localhost/site.css", "data:image/svg+xml,<svg/>"]
    details = {"items": [{"url": url} for url in urls]}
    assert request_count({"audits": {"network-requests": {"details": details}}}) == 2
