"""Comparisons are computed once, and again after a change; what pages show is committed."""

from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest

from templates import record
from templates.pieces import comparisons
from templates.pieces.comparisons import Kept, compute
from validation.compare import compare
from validation.rows import Row, read_rows

ROWS = list(islice(read_rows("counting"), 3))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only file that the results depend on."""
    source = tmp_path / "sources" / "part.py"
    source.parent.mkdir()
    source.write_text("old")
    monkeypatch.setattr("tools.files.ROOT", tmp_path)
    monkeypatch.setattr(comparisons, "SOURCES", (source.parent,))
    monkeypatch.setattr(comparisons, "KEPT", tmp_path / "kept")
    return source


def test_results_are_computed_once_and_again_after_a_source_changed(source: Path) -> None:
    asked = []

    def batches() -> list[list[Row]]:
        asked.append(source.read_text())
        return [ROWS[:2], ROWS[2:]]

    rows = Kept("rows", comparisons._compared, batches)
    found = [item for batch in rows.results() for item in batch]
    assert found == compare(ROWS)  # though other processes computed them
    assert rows.results()
    assert asked == ["old"]
    source.write_text("new")
    assert rows.results()
    assert asked == ["old", "new"]
    assert len(list((source.parents[1] / "kept").iterdir())) == 1


def test_results_of_several_pages_are_computed_together(source: Path) -> None:
    texts = Kept("texts", str.upper, lambda: ("a", "b")), Kept("more", str.lower, lambda: ("C",))
    compute(texts)
    assert [one.path.is_file() for one in texts] == [True, True]
    assert [one.results() for one in texts] == [["A", "B"], ["c"]]


def test_all_that_pages_take_from_the_calculator_at_length_is_recorded() -> None:
    root = Path(record.__file__).parent
    names = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
    values = [one for name in names for one in vars(import_module(".".join(name.parts))).values()]
    values += [one for each in values if isinstance(each, dict) for one in each.values()]
    named = {one.name for one in values if isinstance(one, Kept)} - {*comparisons.COMPARISONS}
    assert named == {one.name for one in record.RECORDED}


def test_every_source_of_the_calculator_and_of_the_measurements_counts() -> None:
    files = set(comparisons._files())
    root = comparisons.ROOT
    names = ("calculator/estimate.py", "calculator/models/gpt2.py", "validation/compare.py")
    configs = ("validation/configs/llama.json", "validation/measurements/counting-llama.jsonl")
    assert {root / name for name in (*names, *configs)} <= files
