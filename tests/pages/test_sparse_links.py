"""Pages show measured rounds of local steps as recorded, beside what the planner says."""

import json
from pathlib import Path
from typing import Any

import pytest

from templates.pages.measurements import sparse_links


def row(**more: Any) -> dict[str, Any]:
    common = {
        "peers": 4,
        "mbit_per_second": 20.0,
        "round_trip_ms": 0.0,
        "parameters": 8_000_000,
        "payload_bytes": 2_500_000,
        "line_sent": 2_600_000,
        "line_received": 7_700_000,
        "seconds": 10.0,
        "parts": {"preparing": 1.0, "handing_in": 1.5, "waiting": 2.0, "downloading": 3.5},
    }
    return common | more


def test_a_recorded_round_becomes_a_row(tmp_path: Path) -> None:
    path = tmp_path / "sparse-links.json"
    assert sparse_links.read(path) is None
    rows = [row(peers=8), row()]
    path.write_text(json.dumps({"machine": {"date": "2026-11-23T05:00"}, "rows": rows}))
    found = sparse_links.read(path)
    assert found is not None
    assert [one.peers for one in found.rounds] == [4, 8]
    assert found.find(4, 50.0) is None
    one = found.find(4, 20.0)
    assert one is not None
    # 1 s up and 3 s down at 20 Mbit/s, without a round trip
    assert one.planned == pytest.approx(4.0)
    assert one.moving == pytest.approx(5.0)
    assert one.shortest == pytest.approx(190.0)  # 190 of 200 s are 95%
    assert one.planned_cells[3:] == ["4.0 s", "5.0 s", "+1.0 s", "10.0 s"]


def test_a_simulated_round_has_the_files_of_one_and_the_rest_of_another(tmp_path: Path) -> None:
    path = tmp_path / "sparse-links.json"
    fast = {"preparing": 9.0, "handing_in": 0.5, "downloading": 1.2}
    rows = [row(peers=8), row(mbit_per_second=50.0, parts=fast)]
    path.write_text(json.dumps({"machine": {"date": "2026-11-23T05:00"}, "rows": rows}))
    found = sparse_links.read(path)
    assert found is not None
    processed, moved = found.find(8, 20.0), found.find(4, 50.0)
    assert processed is not None
    assert moved is not None
    both = sparse_links.simulate(processed, moved)
    # 10 s less 5 s of files, then 0.5 s up and 0.4 s for each of seven files down
    assert both.seconds == pytest.approx(5 + 0.5 + 2.8)
    assert (both.peers, both.mbit, both.sent) == (8, 50.0, processed.sent)
    assert "simulated" in both.cells[1]


def test_the_simulation_agrees_with_what_was_measured() -> None:
    found = sparse_links.read()
    assert found is not None
    processed, moved = found.find(8, 20.0), found.find(4, 20.0)
    assert processed is not None
    assert moved is not None
    simulated = sparse_links.simulate(processed, moved)
    assert simulated.downloading == pytest.approx(processed.downloading, rel=0.05)
