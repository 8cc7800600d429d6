"""The zips of bytecode that the browser starts from."""

import site
import subprocess
import sys
import zipfile
from pathlib import Path
from types import CodeType

import pytest

from tools import browser_python, compile_bytecode, import_closure, packed
from tools.browser_python import _zip_of
from tools.console import ROOT, BuildError
from tools.node import Node

SOURCE = '''"""A docstring."""
def fail():
    """Another docstring."""
    return [1 / zero for zero in (0,)]
'''
DATA_CLASS = '''from dataclasses import dataclass
@dataclass(frozen=True, slots=True)
class Point:
    """A docstring."""
    across: int
    up: int = 2
'''


def text_of(tool: str) -> str:
    return (ROOT / "tools" / f"{tool}.py").read_text("utf-8")


def zipped(path: Path, files: dict[str, str]) -> str:
    with zipfile.ZipFile(path, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return str(path)


def printed(program: str, *options: str) -> str:
    """The output of a program that Python runs in a process of its own."""
    return subprocess.check_output([sys.executable, *options, "-c", program], text=True)


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    files = {"package/": "", "package/__init__.py": "", "package/failing.py": SOURCE}
    sources = zipped(tmp_path / "sources.zip", {**files, "package/data.txt": "kept"})
    bytecode = tmp_path / "bytecode.zip"
    compile_bytecode.compile_zip(sources, str(bytecode))
    return bytecode


def test_python_imports_from_the_compiled_zip_which_has_other_files_and_no_source(
    compiled: Path,
) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(compiled)!r})\n"
        "import package.failing as module; print(module.fail.__name__, module.__doc__)"
    )
    assert printed(program) == "fail None\n"
    with zipfile.ZipFile(compiled) as archive:
        assert archive.read("package/data.txt") == b"kept"
        assert not [name for name in archive.namelist() if name.endswith(".py")]


@pytest.mark.parametrize("strip", [True, False])
def test_line_tables_are_stripped_at_every_depth_or_kept(strip: bool) -> None:
    code = compile_bytecode.compiled(SOURCE.encode(), "failing.py")
    tables = [
        bool(part.co_linetable)
        for part in every_code(compile_bytecode.without_line_tables(code) if strip else code)
    ]
    assert len(tables) >= 2
    assert all(tables) is not strip
    assert any(tables) is not strip


def test_stand_ins_answer_what_a_start_asks_of_what_a_page_does_not_need(tmp_path: Path) -> None:
    replaced = dict.fromkeys(compile_bytecode.REPLACED, "raise ImportError")
    sources = zipped(tmp_path / "sources.zip", {"pyodide/__init__.py": "", **replaced})
    library = tmp_path / "library.zip"
    compile_bytecode.compile_zip(sources, str(library), text_of("stand_ins"))
    program = f"""import sys; sys.path.insert(0, {str(library)!r})
import pyodide._package_loader as loader, pyodide.webloop as loop, asyncio
loader.init_loaded_packages(); print(loader.DSO_DIR, loader.SITE_PACKAGES)
loop._initialize_event_loop()
try: asyncio.get_event_loop()
except RuntimeError as error: print(error)"""
    where, why = printed(program).splitlines()
    assert where == f"/usr/lib {site.getsitepackages()[0]}"
    assert "no asyncio" in why


@pytest.fixture
def packed_zip(tmp_path: Path) -> Path:
    files = {
        "package/__init__.py": "from package import failing",
        "package/failing.py": SOURCE,
        "package/deep/__init__.py": "",
        "package/deep/down.py": "from ..failing import fail",
        "package/deep/figures.json": "[1, 2]",
        "points.py": DATA_CLASS,
    }
    sources, target = zipped(tmp_path / "package.zip", files), tmp_path / "packed.zip"
    compile_bytecode.pack_zip(sources, str(target), text_of("packed"))
    return target


def test_python_imports_modules_that_are_packed_into_one_file(packed_zip: Path) -> None:
    program = f"""import sys; sys.path.append({str(packed_zip)!r})
import packed; packed.install({str(packed_zip)!r})
import package.deep.down as module
print(module.__name__, module.__package__, sys.modules["package"].failing.__doc__)
try: module.fail()
except ZeroDivisionError as error: print(error.__traceback__.tb_next.tb_lineno)
beside = module.__spec__.origin.replace("down.py", "figures.json")
print(module.__spec__.loader.get_data(beside).decode())
try: import package.missing
except ModuleNotFoundError as error: print(error)"""
    lines = ["package.deep.down package.deep None", "4", "[1, 2]"]
    assert printed(program).splitlines() == [*lines, "No module named 'package.missing'"]


def test_the_same_sources_give_the_same_bytes(
    tmp_path: Path, compiled: Path, packed_zip: Path
) -> None:
    again = tmp_path / "again.zip"
    compile_bytecode.compile_zip(str(tmp_path / "sources.zip"), str(again))
    assert again.read_bytes() == compiled.read_bytes()
    compile_bytecode.pack_zip(str(tmp_path / "package.zip"), str(again), text_of("packed"))
    assert again.read_bytes() == packed_zip.read_bytes()
    assert compile_bytecode.MODULES == packed.MODULES


def test_a_packed_library_is_imported_from_its_start_and_names_what_it_lacks(
    tmp_path: Path,
) -> None:
    names = ("encodings/__init__.py", "one.py", "deep/__init__.py", "deep/two.py")
    sources = zipped(tmp_path / "sources.zip", {name: f"name = {name!r}" for name in names})
    calculator = tmp_path / "calculator.zip"
    whole, part = str(tmp_path / "whole.zip"), tmp_path / "part.zip"
    compile_bytecode.compile_zip(sources, whole)
    compile_bytecode.pack_zip(sources, str(calculator), text_of("packed"))
    import_closure.write_closure(whole, ["encodings", "deep", "one"], str(calculator), str(part))
    with zipfile.ZipFile(part) as archive:
        early = {"encodings/__init__.pyc", "packed.pyc", "sitecustomize.pyc", "left_out.pyc"}
        assert set(archive.namelist()) == early | {compile_bytecode.MODULES}
    program = (
        f"import sys; sys.path.insert(0, {str(part)!r})\n"
        "import sitecustomize, deep, one, left_out\n"
        "print(deep.name, one.name, one.__spec__.origin, *left_out.NAMES)"
    )
    assert printed(program, "-S") == f"deep/__init__.py one.py {part}/one.py deep.two\n"


def every_code(code: CodeType) -> list[CodeType]:
    inside = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [code, *(deeper for part in inside for deeper in every_code(part))]


def test_a_zip_of_sources_has_no_dates() -> None:
    modules = {path.name: path for path in sorted((ROOT / "calculator").glob("*.py"))}
    first = _zip_of(modules)
    next(iter(modules.values())).touch()
    assert _zip_of(modules) == first


def test_where_node_fails_the_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_python, "CACHE", tmp_path / "cache")
    nothing = Node(tmp_path / "no-node", (tmp_path / "no-npm",))
    for _ in range(2):  # nothing unfinished is taken for the cache the second time
        with pytest.raises(BuildError, match="could not compile"):
            browser_python.make_browser_python(nothing, ROOT / "node_modules")


def test_methods_of_data_classes_come_compiled(packed_zip: Path) -> None:
    assert "points" not in sys.modules
    program = f"""import sys; sys.path.append({str(packed_zip)!r})
import packed; packed.install({str(packed_zip)!r})
compiled = []
sys.addaudithook(lambda event, details: event == "compile" and compiled.append(event))
import points
print(points.Point(1), points.Point.__doc__, len(compiled))
points.dataclass(type("Unknown", (), {{"__annotations__": {{"name": str}}}}))
print(len(compiled))"""
    first, unknown = printed(program).splitlines()
    assert first == "Point(across=1, up=2) Point 0"
    assert int(unknown) > 0  # another class's methods are compiled as ever
