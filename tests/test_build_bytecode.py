"""The zips of bytecode that the browser starts from."""

import importlib.util
import marshal
import subprocess
import sys
import zipfile
from pathlib import Path
from types import CodeType

import pytest

from tools import browser_python, compile_bytecode
from tools.browser_python import _zip_of
from tools.console import ROOT
from tools.node import Node

SOURCE = '''"""A docstring."""
def fail():
    """Another docstring."""
    return [1 / zero for zero in (0,)]
'''


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    sources = tmp_path / "sources.zip"
    with zipfile.ZipFile(sources, "w") as target:
        target.writestr("package/", "")
        target.writestr("package/__init__.py", "")
        target.writestr("package/failing.py", SOURCE)
        target.writestr("package/data.txt", "kept")
    bytecode = tmp_path / "bytecode.zip"
    compile_bytecode.compile_zip(str(sources), str(bytecode), strip_line_tables=True)
    return bytecode


def test_python_imports_from_the_compiled_zip(compiled: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(compiled)!r})\n"
        "import package.failing as module; print(module.fail.__name__, module.__doc__)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "fail None\n"


def test_other_files_are_copied_and_no_source_is_left(compiled: Path) -> None:
    with zipfile.ZipFile(compiled) as archive:
        assert archive.read("package/data.txt") == b"kept"
        assert not [name for name in archive.namelist() if name.endswith(".py")]


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, compiled: Path) -> None:
    again = tmp_path / "again.zip"
    compile_bytecode.compile_zip(str(tmp_path / "sources.zip"), str(again), strip_line_tables=True)
    assert again.read_bytes() == compiled.read_bytes()


@pytest.mark.parametrize("strip", [True, False])
def test_line_tables_are_stripped_at_every_depth_or_kept(strip: bool) -> None:
    compiled = compile_bytecode.compile_module(SOURCE.encode(), "failing.py", strip)
    assert compiled[:4] == importlib.util.MAGIC_NUMBER
    code = marshal.loads(compiled[16:])
    tables = [bool(part.co_linetable) for part in every_code(code)]
    assert len(tables) >= 2
    assert all(tables) is not strip
    assert any(tables) is not strip


def every_code(code: CodeType) -> list[CodeType]:
    inside = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [code, *(deeper for part in inside for deeper in every_code(part))]


def test_a_zip_of_sources_has_no_dates() -> None:
    modules = sorted((ROOT / "calculator").glob("*.py"))
    first = _zip_of(modules)
    modules[0].touch()
    assert _zip_of(modules) == first


def test_each_archive_is_compiled_once_also_where_node_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser_python, "CACHE", tmp_path / "cache")
    nothing = Node(tmp_path / "no-node", (tmp_path / "no-npm",))
    assets = tmp_path / "assets"
    assets.mkdir()
    browser_python.stage_browser_python(assets, nothing, ROOT / "node_modules")
    assert capsys.readouterr().out.count("could not compile") == 2
    stock = ROOT / "node_modules" / "pyodide" / "python_stdlib.zip"
    library = assets / "pyodide" / "python_stdlib_bytecode.zip"
    assert library.read_bytes() == stock.read_bytes()
