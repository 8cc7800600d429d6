"""tools/checks.py: what no file of this repository may hold."""

from pathlib import Path

import pytest

from tools import checks
from tools.console import ROOT


@pytest.mark.parametrize(
    "line",
    [
        '"resol' + 'ved": "https://registry.npm' + 'js.org/pyodide"',
        "--index" + "-url https://pypi" + ".org/simple",
        "/home" + "/somebody/project",
        "see /ro" + "ot/notes.txt",
        "token = hf" + "_abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_forbidden_things_are_found_where_they_stand(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    path = tmp_path / "file.txt"
    path.write_text(f"fine\n{line}\n")
    (finding,) = checks.forbidden_things([path])
    assert finding.startswith("file.txt:2: ")


@pytest.mark.parametrize(
    "line", ["docs/home/page.md", "https://example.org/wo" + "rk/x", "a/opt/b"]
)
def test_ordinary_paths_and_addresses_are_allowed(line: str, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text(line)
    assert list(checks.forbidden_things([path])) == []


def test_this_repository_holds_nothing_forbidden() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of its files")
    assert list(checks.forbidden_things(checks.tracked_files())) == []


def test_a_misspelt_word_is_found_and_a_name_in_code_is_none(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("the statics of a model\n")
    assert not checks.misspelled([path])
    path.write_text("what was reci" + "eved\n")
    assert checks.misspelled([path])
