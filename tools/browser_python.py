"""Everything the browser needs to run our Python: Pyodide, a compiled library, `calculator`."""

import hashlib
import importlib.util
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools.console import ROOT, BuildError, run, say, step
from tools.files import WORKSHOP, digest, write_atomically
from tools.node import Node

TOOLS = ROOT / "tools"
CACHE = WORKSHOP / "bytecode"
COMPILER = (TOOLS / "compile_bytecode.mjs", TOOLS / "compile_bytecode.py")
FINDER = TOOLS / "packed.py"
LOADER = TOOLS / "package_loader.py"
LOOP = TOOLS / "event_loop.py"
CLOSURE = (TOOLS / "import_closure.mjs", TOOLS / "import_closure.py", TOOLS / "exercise.py")
# Modules, and a folder, that only the command line needs.
COMMAND_LINE = (
    *("__main__.py", "commandline.py", "config_file.py", "explaining.py", "hub.py", "named.py"),
    *("check.py", "line.py"),
)
# What reads a file of training, with PyYAML in Python alone: fetched by those who have one.
READERS = "doors"
RUNTIME_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)


def stage_browser_python(assets: Path, node: Node, node_modules: Path) -> None:
    """Put the runtime, both standard libraries, calculator.zip and readers.zip into `assets`.

    assets/pyodide/python_stdlib_bytecode.zip is the imported part of the library, packed: it is
    small and starts fast. The stock python_stdlib.zip beside it is what worker.js falls back to,
    also for a single module that the part lacks.
    """
    pyodide = node_modules / "pyodide"
    folder = assets / "pyodide"
    folder.mkdir(parents=True)
    for name in RUNTIME_FILES:
        shutil.copyfile(pyodide / name, folder / name)
    (folder / "pyodide-lock.json").write_text(package_lock(node_modules), "utf-8")
    calculator = _packed("calculator", _named(browser_files()), pyodide, node)
    shutil.copyfile(calculator, assets / "calculator.zip")
    readers = _packed("readers", _named(reader_files()) | _yaml_files(), pyodide, node)
    library = _compiled_library(pyodide, node)
    parts = library and _imported_parts(library, calculator, readers, pyodide, node)
    library, readers = parts or (library, readers)
    shutil.copyfile(library or pyodide / "python_stdlib.zip", folder / "python_stdlib_bytecode.zip")
    shutil.copyfile(readers, assets / "readers.zip")


def package_lock(node_modules: Path) -> str:
    """An empty list of packages: we use none, and the full one is 119 kB of every first visit."""
    full = (node_modules / "pyodide" / "pyodide-lock.json").read_text("utf-8")
    return json.dumps({"info": json.loads(full)["info"], "packages": {}})


def _compiled_library(pyodide: Path, node: Node) -> Path | None:
    """The standard library as bytecode without line tables; None if Node cannot compile it."""
    stock = pyodide / "python_stdlib.zip"
    name = digest([*COMPILER, LOADER, LOOP, stock, pyodide / "package.json"])
    work = ("compile_zip", LOADER, LOOP)
    title = "Python's library for the browser"
    return _compiled(stock, CACHE / f"library-{name}.zip", pyodide, node, title, work)


def _imported_parts(
    library: Path, calculator: Path, readers: Path, pyodide: Path, node: Node
) -> tuple[Path, Path] | None:
    """Parts of `library` that Pyodide and `calculator` import, and `readers` with what they import.

    None if Python cannot start from them.
    """
    name = digest([*CLOSURE, *COMPILER, library, calculator, readers])
    targets = CACHE / f"closure-{name}.zip", CACHE / f"readers-with-library-{name}.zip"
    if all(target.is_file() for target in targets):
        return targets
    command: list[str | Path] = [node.node, CLOSURE[0], pyodide, library, calculator, readers]
    command += targets
    try:
        with step("Leaving out of Python's library what nothing imports"):
            run(command, "Python does not start from the part that is imported.")
    except BuildError as error:
        say(f"  {error}\n  The site gets the whole library instead: it works, and is larger.")
        return None
    return targets


def _packed(title: str, files: Mapping[str, Path], pyodide: Path, node: Node) -> Path:
    """Files as bytecode with line tables, packed into one file, else as a zip of sources."""
    content = _zip_of(files)
    tools = digest([*COMPILER, FINDER, pyodide / "package.json"])
    name = f"{tools}-{hashlib.sha256(content).hexdigest()[:16]}"
    sources = CACHE / f"{title}-{name}-sources.zip"
    write_atomically(sources, content)
    target = CACHE / f"{title}-{name}.zip"
    work = ("pack_zip", FINDER) if title == "calculator" else ("pack_beside",)
    return _compiled(sources, target, pyodide, node, title, work) or sources


def browser_files() -> list[Path]:
    """The modules of `calculator` that pages can use, and its data files, without readers."""
    found = (each for kind in ("py", "json") for each in (ROOT / "calculator").rglob(f"*.{kind}"))
    return sorted(path for path in found if _is_used(path) and path.parent.name != READERS)


def reader_files() -> list[Path]:
    """The modules of `calculator` that read a visitor's file of training, and their tables."""
    folder = ROOT / "calculator" / READERS
    return sorted(filter(_is_used, (*folder.glob("*.py"), *folder.glob("tables/*.toml"))))


def _is_used(path: Path) -> bool:
    return path.name not in COMMAND_LINE


def _named(files: list[Path]) -> dict[str, Path]:
    return {file.relative_to(ROOT).as_posix(): file for file in files}


def _yaml_files() -> dict[str, Path]:
    """PyYAML's modules, without the one for a library in C."""
    found = importlib.util.find_spec("yaml")
    if found is None or found.origin is None:
        raise BuildError("PyYAML is not installed: the site's requirements name it.")
    files = sorted(Path(found.origin).parent.glob("*.py"))
    return {f"yaml/{file.name}": file for file in files if file.name != "cyaml.py"}


def _compiled(
    sources: Path, target: Path, pyodide: Path, node: Node, title: str, work: tuple[str | Path, ...]
) -> Path | None:
    if target.is_file():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [node.node, COMPILER[0], pyodide, sources, target, *work]
    try:
        with step(f"Compiling {title} with Pyodide"):
            run(command, f"Pyodide could not compile {title}.")
    except BuildError as error:
        say(f"  {error}\n  The site gets the sources instead: it works, and starts slower.")
        return None
    return target


def _zip_of(files: Mapping[str, Path]) -> bytes:
    """A zip of `files` that is the same bytes wherever and whenever it is made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, file in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, file.read_bytes())
    return packed.getvalue()
