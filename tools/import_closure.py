"""Run inside Pyodide by browser_python.mjs: the part of the standard library that is imported.

Two thirds of the library are never imported by Pyodide and `calculator`. They stay out of the zip
that every first visit downloads; `left_out`, a module in it, names them, so that the page can fetch
the whole library should one be asked for after all. The rest is packed into one file, as
`calculator` is: `sitecustomize`, which Python imports at its start, makes it known. What only the
readers of a visitor's files import is packed beside them.
"""

import dis
import marshal
import sys
import zipfile
from collections.abc import Iterator
from types import CodeType

from tools.compile_bytecode import (
    FINDER,
    MODULES,
    Modules,
    add_entry,
    add_module,
    add_packed,
    module_of,
    names_of,
)

HEADER_SIZE = 16  # of a `.pyc` file
# What Python imports before it imports `sitecustomize`.
EARLY = ("encodings",)
# Fetched on demand: no start needs it.
READERS = "calculator.doors"
IMPORT_NAME = dis.opmap["IMPORT_NAME"]
INSTALL = f"""from {FINDER} import install
install(__file__.rpartition("/")[0])
"""


def wanted(calculator: str) -> list[str]:
    """The modules of `calculator`, and those that any of its code names in an import."""
    sys.path.append(calculator)
    import packed  # type: ignore[import-not-found]  # it is in the archive

    modules = packed.read(calculator)
    own = names_of(modules)
    used = {name for each in own for name in _imports(marshal.loads(modules[each][0]))}
    return sorted(name for name in {*own, *used} if not name.startswith(READERS))


def _imports(code: CodeType) -> Iterator[str]:
    """The absolute names after `import` and `from`, at every depth of `code`."""
    if IMPORT_NAME in code.co_code[::2]:  # to take it apart is slow
        for step in dis.get_instructions(code):
            if step.opcode == IMPORT_NAME:
                yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


def write_closure(library: str, names: list[str], calculator: str, target: str) -> None:
    """Pack the modules `names` of the zip at `library`, and `left_out` with the others' names.

    `calculator` is the archive that has the module that imports packed ones.
    """
    with zipfile.ZipFile(library) as whole, zipfile.ZipFile(target, "w") as closure:
        paths = _paths(whole)
        chosen = paths.keys() & set(names)
        early = {name for name in chosen if name.partition(".")[0] in EARLY}
        for name in sorted(early):
            add_entry(closure, paths[name], whole.read(paths[name]))
        add_packed(closure, MODULES, _code(whole, chosen - early))
        with zipfile.ZipFile(calculator) as archive:
            add_entry(closure, f"{FINDER}.pyc", archive.read(f"{FINDER}.pyc"))
        add_module(closure, "sitecustomize", INSTALL)
        left_out = " ".join(sorted(paths.keys() - chosen))
        add_module(closure, "left_out", f"NAMES = frozenset({left_out!r}.split())")


def write_readers(library: str, names: list[str], readers: str, target: str) -> None:
    """Pack the readers with the modules `names` of the zip at `library`, which they import."""
    import packed

    modules = packed.read(readers)
    with zipfile.ZipFile(library) as whole, zipfile.ZipFile(target, "w") as written:
        modules |= _code(whole, _paths(whole).keys() & set(names))
        add_packed(written, MODULES, modules)


def _paths(library: zipfile.ZipFile) -> dict[str, str]:
    return {module_of(path): path for path in library.namelist() if path.endswith(".pyc")}


def _code(library: zipfile.ZipFile, names: set[str]) -> Modules:
    """The code of some modules, as packed.py reads it."""
    paths = _paths(library)
    return {
        name: (library.read(paths[name])[HEADER_SIZE:], paths[name].endswith("/__init__.pyc"))
        for name in sorted(names)
    }
