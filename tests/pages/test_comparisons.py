"""Comparisons with the measured rows are computed once and again after a change."""

from itertools import islice
from pathlib import Path

import pytest

from templates.pieces import comparisons
from validation.compare import compare
from validation.rows import read_rows

ROWS = list(islice(read_rows("counting"), 3))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only file that the comparisons depend on, beside three rows."""
    source = tmp_path / "sources" / "part.py"
    source.parent.mkdir()
    source.write_text("old")
    monkeypatch.setattr("tools.files.ROOT", tmp_path)
    monkeypatch.setattr(comparisons, "SOURCES", (source.parent,))
    monkeypatch.setattr(comparisons, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(comparisons, "read_rows", lambda device: iter(ROWS))
    return source


def test_other_processes_give_the_comparisons_of_this_one() -> None:
    assert comparisons.computed(ROWS) == compare(ROWS)


def test_comparisons_are_computed_once_and_again_after_a_source_changed(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    def count(rows: object) -> object:
        counted.append(rows)
        return compare(ROWS)

    monkeypatch.setattr(comparisons, "computed", count)
    ask = comparisons.comparisons_on.__wrapped__
    assert ask("counting") == ask("counting") == compare(ROWS)
    assert len(counted) == 1
    source.write_text("new")
    assert ask("counting") == compare(ROWS)
    assert len(counted) == 2
    assert len(list((source.parents[1] / "kept").iterdir())) == 1


def test_every_source_of_the_calculator_and_of_the_measurements_counts() -> None:
    files = set(comparisons._files())
    root = comparisons.ROOT
    names = ("calculator/estimate.py", "calculator/models/gpt2.py", "validation/compare.py")
    configs = ("validation/configs/llama.json", "validation/measurements/counting-llama.jsonl")
    assert {root / name for name in (*names, *configs)} <= files
