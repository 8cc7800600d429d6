"""Everything the browser needs to run our Python: Pyodide, a compiled library, `calculator`."""

import io
import json
import shutil
import zipfile
from pathlib import Path

from tools.console import ROOT, BuildError, run, say, step
from tools.files import WORKSHOP, digest, write_atomically
from tools.node import Node

TOOLS = ROOT / "tools"
CACHE = WORKSHOP / "bytecode"
COMPILER = (TOOLS / "compile_bytecode.mjs", TOOLS / "compile_bytecode.py")
RUNTIME_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)


def stage_browser_python(assets: Path, node: Node, node_modules: Path) -> None:
    """Put the runtime, both libraries, calculator.zip and runtime.mjs into `assets`."""
    pyodide = node_modules / "pyodide"
    folder = assets / "pyodide"
    folder.mkdir(parents=True)
    for name in RUNTIME_FILES:
        shutil.copyfile(pyodide / name, folder / name)
    library = _compiled_library(pyodide, node)
    if library is not None:
        shutil.copyfile(library, folder / "library.zip")
    calculator = _packed_calculator(pyodide, node)
    shutil.copyfile(calculator, assets / "calculator.zip")
    manifest = _manifest(pyodide, library, calculator)
    write_atomically(assets / "runtime.mjs", manifest.encode())


def _compiled_library(pyodide: Path, node: Node) -> Path | None:
    """The standard library as bytecode without line tables; None if Node cannot compile it."""
    stock = pyodide / "python_stdlib.zip"
    target = CACHE / f"library-{digest([*COMPILER, stock, pyodide / 'package.json'])}.zip"
    return _compiled(stock, target, pyodide, node, "strip", "Python's library for the browser")


def _packed_calculator(pyodide: Path, node: Node) -> Path:
    """`calculator` as a zip of bytecode with line tables, else of sources."""
    modules = sorted((ROOT / "calculator").rglob("*.py"))
    name = digest([*COMPILER, pyodide / "package.json", *modules])
    sources = CACHE / f"calculator-{name}-sources.zip"
    write_atomically(sources, _zip_of(modules))
    target = CACHE / f"calculator-{name}.zip"
    return _compiled(sources, target, pyodide, node, "keep", "calculator") or sources


def _compiled(
    sources: Path, target: Path, pyodide: Path, node: Node, line_tables: str, title: str
) -> Path | None:
    if target.is_file():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [node.node, COMPILER[0], pyodide, sources, target, line_tables]
    try:
        with step(f"Compiling {title} with Pyodide"):
            run(command, f"Pyodide could not compile {title}.")
    except BuildError as error:
        say(f"  {error}\n  The site gets the sources instead: it works, and starts slower.")
        return None
    return target


def _zip_of(modules: list[Path]) -> bytes:
    """A zip of `modules` that is the same bytes wherever and whenever it is made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for module in modules:
            entry = zipfile.ZipInfo(module.relative_to(ROOT).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, module.read_bytes())
    return packed.getvalue()


def _manifest(pyodide: Path, library: Path | None, calculator: Path) -> str:
    """The module that tells worker.js where all this is, relative to the module itself."""
    package = json.loads((pyodide / "package.json").read_text("utf-8"))
    # An empty list of packages: ours is the standard library alone, and the full lock is 119 kB.
    info = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))["info"]
    lock = json.dumps({"info": info, "packages": {}})
    stock = '"pyodide/python_stdlib.zip"'
    compiled = f'"pyodide/library.zip?{library.stem}"' if library else stock
    return f"""\
// Written by build.py. Where the browser's Python is, relative to this file.
const here = (path) => new URL(path, import.meta.url).href;
export const version = "{package["version"]}";
export const pyodideScript = here("pyodide/pyodide.mjs");
export const indexURL = here("pyodide/");
export const libraryURL = here({compiled});
export const stockLibraryURL = here({stock});
export const calculatorURL = here("calculator.zip?{calculator.stem}");
export const lockFileContents = {lock};
"""
