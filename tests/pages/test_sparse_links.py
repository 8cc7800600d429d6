"""Pages show measured rounds of local steps as recorded, beside what the planner says."""

import json
from pathlib import Path
from typing import Any

import pytest

from templates.pages.measurements import sparse_links


def read(folder: Path, *rows: dict[str, Any]) -> sparse_links.SparseLinks:
    path = folder / "sparse-links.json"
    assert sparse_links.read(path) is None
    common = {"peers": 4, "mbit_per_second": 20.0, "round_trip_ms": 0.0, "parameters": 8_000_000}
    common |= {"payload_bytes": 2_500_000, "line_sent": 2_600_000, "line_received": 7_700_000}
    parts = {"preparing": 1.0, "handing_in": 1.5, "waiting": 2.0, "downloading": 3.5}
    common |= {"seconds": 10.0, "parts": parts}
    measured = {"machine": {"date": "2026-11-23T05:00"}, "rows": [common | row for row in rows]}
    path.write_text(json.dumps(measured))
    return sparse_links.read(path)


def test_a_recorded_round_becomes_a_row(tmp_path: Path) -> None:
    found = read(tmp_path, {"peers": 8}, {})
    assert [one.peers for one in found.rounds] == [4, 8]
    assert found.find(4, 50.0) is None
    one = found.find(4, 20.0)
    # 1 s up and 3 s down at 20 Mbit/s, without a round trip
    assert one.planned == pytest.approx(4.0)
    assert one.moving == pytest.approx(5.0)
    assert one.shortest == pytest.approx(190.0)  # 190 of 200 s are 95%
    assert one.planned_cells[3:] == ["4.0 s", "5.0 s", "+1.0 s", "10.0 s"]


def test_a_simulated_round_has_the_files_of_one_and_the_rest_of_another(tmp_path: Path) -> None:
    fast = {"preparing": 9.0, "handing_in": 0.5, "downloading": 1.2}
    found = read(tmp_path, {"peers": 8}, {"mbit_per_second": 50.0, "parts": fast})
    processed, moved = found.find(8, 20.0), found.find(4, 50.0)
    both = sparse_links.simulate(processed, moved)
    # 10 s less 5 s of files, then 0.5 s up and 0.4 s for each of seven files down
    assert both.seconds == pytest.approx(5 + 0.5 + 2.8)
    assert (both.peers, both.mbit, both.sent) == (8, 50.0, processed.sent)
    assert "simulated" in both.cells[1]


def test_the_simulation_agrees_with_what_was_measured() -> None:
    found = sparse_links.read()
    processed, moved = found.find(8, 20.0), found.find(4, 20.0)
    simulated = sparse_links.simulate(processed, moved)
    assert simulated.downloading == pytest.approx(processed.downloading, rel=0.05)
