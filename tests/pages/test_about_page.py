"""About and its projects' sources; the changelog and the speeds, which are documentation."""

import re
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Table, write_part
from templates.pages.changes.context import CHANGELOG, changelog
from templates.pages.measurements import speed
from templates.render import render_page


def test_the_changelog_is_shown_whole() -> None:
    entries = [line for line in CHANGELOG.read_text("utf-8").splitlines() if line.startswith("- ")]
    shown = changelog()
    assert entries
    assert all(entry in shown for entry in entries)
    assert re.match(r"## (Unreleased|\d+\.\d+\.\d+ )", shown)  # without brackets


def written(path: Path, **parts: list[Figure]) -> Path:
    """A file as the benchmark leaves it, in the folder `path`."""
    machine = {"processor": "CPU", "cores": 2, "chromium": "156", "load": 3.5}
    machine |= {"date": "2026-11-22T20"}
    file = path / "recorded.json"
    for name, figures in parts.items():
        write_part(file, name, Table(name, figures), f"build.py bench {name}", machine)
    return file


def test_measured_speeds_stand_beside_their_targets(tmp_path: Path) -> None:
    weight = [
        Figure("sent", 4_999_999.0, "bytes", 5e6),
        Figure("kept", 5_010_000.0, "bytes", 5e6),
        Figure("calculator's page: gzip", 5_400_000.0, "bytes", 5e6),
        Figure("time", 3.0, "s"),
    ]
    live = [Figure("time", 1.534, "s")]
    found = speed.read(written(tmp_path, weight=weight, live=live))
    rows = [[row.cells for row in measured.rows] for measured in found.measurements]
    assert rows == [
        [["time", "1.53 s", "–", "–"]],
        [
            ["sent", "5.00 MB", "5.00 MB or less", "met"],
            ["kept", "5.01 MB", "5.00 MB or less", "missed"],
            ["calculator's page: gzip", "5.40 MB", "5.00 MB or less", "missed"],
        ],
    ]
    assert [row.reason for row in found.missed] == [
        speed.UNKNOWN,
        speed.REASONS["calculator's page: gzip"],
    ]
    assert list(found.reasons.values()) == [["kept"], ["calculator's page: gzip"]]
    assert (found.met, found.targets) == (1, 3)
    words = "`build.py bench live`, 2026-11-22, CPU, 2 cores, Chromium 156, load 3.5 at the start"
    assert found.measurements[0].source == words


def test_a_figure_of_several_pages_is_one_row_if_its_target_is_the_same(tmp_path: Path) -> None:
    scores = [
        Figure("home: performance", 97.0, "", 98, True),
        Figure("join: performance", 98.0, "", 98, True),
        Figure("live: performance", 80.0, "", 98, True),
        Figure("home: requests", 11.0, "", 20),
        Figure("join: requests", 20.0, "", 20),
        Figure("first visit: time, stock = 1", 0.5, "", 0.45),
        Figure("second visit: time, stock = 1", 0.5, "", 0.2),
    ]
    found = speed.read(written(tmp_path, lighthouse=scores))
    assert [row.cells for row in found.measurements[0].rows] == [
        ["performance", "home 97, join 98, live 80", "98 or more", "missed by home, live"],
        ["requests", "home 11, join 20", "20 or less", "met"],
        ["first visit: time, stock = 1", "0.5", "0.45 or less", "missed"],
        ["second visit: time, stock = 1", "0.5", "0.2 or less", "missed"],
    ]
    assert (found.met, found.targets) == (3, 7)
    assert speed.UNKNOWN not in {row.reason for row in found.missed}


def test_the_page_shows_what_the_file_holds_and_nothing_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slider = [Figure("95th percentile", 17.04, "ms", 16.7)]
    found = speed.read(written(tmp_path, slider=slider))
    monkeypatch.setattr(speed, "read", lambda: found)
    page = render_page("measurements")
    for words in ("17 ms", "16.7 ms or less", "missed", "build.py bench slider", "CPU"):
        assert words in page
    assert speed.REASONS["95th percentile"] in page
    monkeypatch.setattr(speed, "read", lambda: None)
    assert "Speed of the pages" not in render_page("measurements")
