"""Everything the browser needs to run our Python: Pyodide, a compiled library, `calculator`."""

import hashlib
import importlib.util
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools.compile_bytecode import add_entry
from tools.console import ROOT, BuildError, run
from tools.files import WORKSHOP, digest, fresh
from tools.node import Node

TOOLS = ROOT / "tools"
CACHE = WORKSHOP / "bytecode"
MAKER = TOOLS / "browser_python.mjs"
# What the compiled library is made with, and what else all that starts from it.
COMPILER = (TOOLS / "compile_bytecode.py", TOOLS / "stand_ins.py")
CLOSURE = tuple(TOOLS / f"{name}.py" for name in ("packed", "import_closure", "exercise"))
# Modules, and a folder, that only the command line needs.
COMMAND_LINE = (
    *("__main__.py", "commandline.py", "config_file.py", "explaining.py", "hub.py", "named.py"),
    *("check.py", "line.py"),
)
# What reads a file of training, with PyYAML in Python alone: fetched by those who have one.
READERS = "doors"
LIBRARY = "python_stdlib_bytecode.zip"
RUNTIME_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")


def stage_browser_python(assets: Path, node_modules: Path, made: Path) -> None:
    """Put the runtime and what `make_browser_python` has `made` into `assets`.

    assets/pyodide/python_stdlib_bytecode.zip is the imported part of the library, packed: it is
    small and starts fast. The stock python_stdlib.zip beside it is what worker.js falls back to,
    also for a single module that the part lacks.
    """
    folder = assets / "pyodide"
    folder.mkdir(parents=True)
    for file in runtime_files(node_modules):
        shutil.copyfile(file, folder / file.name)
    (folder / "pyodide-lock.json").write_text(package_lock(node_modules), "utf-8")
    shutil.copyfile(made / LIBRARY, folder / LIBRARY)
    for name in ("calculator.zip", "readers.zip"):
        shutil.copyfile(made / name, assets / name)


def runtime_files(node_modules: Path) -> list[Path]:
    """Pyodide's files that the site has as they are."""
    return [node_modules / "pyodide" / name for name in RUNTIME_FILES]


def package_lock(node_modules: Path) -> str:
    """An empty list of packages: we use none, and the full one is 119 kB of every first visit."""
    full = (node_modules / "pyodide" / "pyodide-lock.json").read_text("utf-8")
    return json.dumps({"info": json.loads(full)["info"], "packages": {}})


def make_browser_python(node: Node, node_modules: Path) -> Path:
    """The folder of what Pyodide makes of our sources and Python's library, kept between builds.

    It has both libraries compiled, calculator.zip and readers.zip. BuildError says that Python
    cannot be compiled, or does not start from what was made.
    """
    pyodide = node_modules / "pyodide"
    compiler = digest([MAKER, *COMPILER, pyodide / "python_stdlib.zip", pyodide / "package.json"])
    sources = {
        "calculator": _zip_of(_named(browser_files())),
        "readers": _zip_of(_named(reader_files()) | _yaml_files()),
    }
    name = hashlib.sha256(f"{compiler}{digest(CLOSURE)}".encode() + b"".join(sources.values()))
    made = CACHE / name.hexdigest()[:16]
    if not made.is_dir():
        part = fresh(CACHE / f"{made.name}.part")
        for title, content in sources.items():
            (part / f"{title}-sources.zip").write_bytes(content)
        command = [node.node, MAKER, pyodide, CACHE / f"library-{compiler}.zip", part]
        run(command, "Pyodide could not compile Python's library and ours.")
        part.rename(made)
    return made


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


def _zip_of(files: Mapping[str, Path]) -> bytes:
    """A zip of `files` that is the same bytes wherever and whenever it is made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, file in files.items():
            add_entry(target, name, file.read_bytes())
    return packed.getvalue()
